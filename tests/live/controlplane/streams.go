package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const outputTimeout = time.Second // for what a command leaves running with its output open

// executor runs a container's commands on this machine.
type executor struct{ directory string }

// ExecInContainer runs a command in the container's folder, without a terminal even where one is asked for. The pod is
// named NAMESPACE/NAME. An exit code other than 0 is a utilexec.ExitError.
func (e executor) ExecInContainer(
	ctx context.Context, pod string, _ types.UID, container string, argv []string,
	in io.Reader, out, err io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	directory := filepath.Join(e.directory, pod, container)
	if failed := os.MkdirAll(directory, 0o700); failed != nil {
		return failed
	}
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Dir = directory
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + directory, "HOSTNAME=" + filepath.Base(pod)}
	command.WaitDelay = outputTimeout
	if out != nil {
		command.Stdout = out
	}
	if err != nil {
		command.Stderr = err
	}
	if in != nil {
		input, failed := command.StdinPipe() // Run would wait for the end of `in`, which comes after the command's
		if failed != nil {
			return failed
		}
		go func() {
			_, _ = io.Copy(input, in)
			_ = input.Close()
		}()
	}
	failed := command.Run()
	if ended := (*exec.ExitError)(nil); errors.As(failed, &ended) {
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code(ended)), Code: code(ended)}
	}
	return failed
}

// code is what a shell would say: 128 and more for a signal.
func code(ended *exec.ExitError) int {
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return ended.ExitCode()
}

// forwarder takes a pod's ports to be those of this machine's loopback.
type forwarder struct{}

// PortForward copies both ways until both ends have closed.
func (forwarder) PortForward(ctx context.Context, _ string, _ types.UID, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer conn.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := io.Copy(stream, conn)
		answered <- err
	}()
	_, _ = io.Copy(conn, stream)
	_ = conn.(*net.TCPConn).CloseWrite()
	return <-answered
}
