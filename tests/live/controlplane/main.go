// One program that is, by the name it is called by, any part of a Kubernetes control plane.
//
// Tests need these programs where nobody has installed them, and Go modules can be had wherever Go is. One binary for
// all of them, because four would each link the same libraries again.
package main

import (
	"fmt"
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
	"kube-apiserver":          run(apiserver.NewAPIServerCommand),
	"kube-controller-manager": run(controllers.NewControllerManagerCommand),
	"kube-scheduler":          run(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
}

// etcd ends the process itself when it fails.
func etcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func run(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

func main() {
	called := filepath.Base(os.Args[0])
	program, known := programs[called]
	if !known {
		names := make([]string, 0, len(programs))
		for name := range programs {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "called as %q; link to this file by one of these names: %s\n", called, strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(program())
}
