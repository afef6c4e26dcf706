// One program that is, by the name it is called by, any part of a Kubernetes control plane.
//
// Tests need these programs where nobody has installed them, and Go modules can be had wherever Go is. It is one
// binary because each of four would hold the same libraries again.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var programs = map[string]func() int{
	"etcd":                    etcd,
	"kube-apiserver":          of(apiserver.NewAPIServerCommand),
	"kube-controller-manager": of(controllers.NewControllerManagerCommand),
	"kube-scheduler":          of(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"node-server":             nodeServer,
}

// etcd ends the process itself when it fails.
func etcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func of(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

func main() {
	called := filepath.Base(os.Args[0])
	program, known := programs[called]
	if !known {
		names := strings.Join(slices.Sorted(maps.Keys(programs)), ", ")
		fmt.Fprintf(os.Stderr, "expected to be called by one of the names %s, found %s: make a link\n", names, called)
		os.Exit(2)
	}
	os.Exit(program())
}
