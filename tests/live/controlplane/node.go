package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	remotecommandconsts "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubelet/pkg/cri/streaming/portforward"
	"k8s.io/kubelet/pkg/cri/streaming/remotecommand"
)

const (
	idleTimeout    = 10 * time.Minute
	streamsTimeout = 30 * time.Second // until a client has opened all its streams
	caller         = "kube-apiserver" // the only one who is served
)

// node answers what the API server asks a kubelet, for pods that are simulated: exec runs the command on this machine,
// in a folder of the container's own; a port of a pod is one of this machine's loopback; logs are what the container's
// command would say (see logs.go). The protocols are the kubelet's own code.
type node struct {
	pods      kubernetes.Interface
	directory string
}

// nodeServer serves all nodes of a cluster until it is killed. It writes its port to a file when it listens.
func nodeServer() int {
	flags := flag.NewFlagSet("node-server", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "of somebody who may read all pods")
	directory := flags.String("directory", "", "folder for what containers write")
	certificate := flags.String("tls-cert-file", "", "of this server")
	key := flags.String("tls-private-key-file", "", "of this server")
	authority := flags.String("client-ca-file", "", "who must have signed the caller's certificate")
	port := flags.String("port-file", "", "where to write the port")
	_ = flags.Parse(os.Args[1:]) // ends the process if it fails
	log.Fatal(serve(*kubeconfig, *directory, *certificate, *key, *authority, *port))
	return 1
}

func serve(kubeconfig, directory, certificate, key, authority, portFile string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	pods, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	pem, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	trusted.AppendCertsFromPEM(pem)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := announce(portFile, listener.Addr().(*net.TCPAddr).Port); err != nil {
		return err
	}
	server := &http.Server{
		Handler: onlyFor(caller, (&node{pods, directory}).routes()),
		TLSConfig: &tls.Config{
			ClientCAs:  trusted,
			ClientAuth: tls.RequireAndVerifyClientCert,
			NextProtos: []string{"http/1.1"}, // connections are taken over for streams, which HTTP/2 does not allow
		},
	}
	return server.ServeTLS(listener, certificate, key)
}

// announce makes the file appear with its content.
func announce(path string, port int) error {
	if err := os.WriteFile(path+".new", fmt.Appendf(nil, "%d", port), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func onlyFor(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if found := r.TLS.PeerCertificates[0].Subject.CommonName; found != name {
			http.Error(w, fmt.Sprintf("expected %s, found %s", name, found), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (n *node) routes() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("/exec/{namespace}/{pod}/{container}", n.exec)
	routes.HandleFunc("/portForward/{namespace}/{pod}", n.portForward)
	routes.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.logs)
	return routes
}

func (n *node) exec(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod, container := n.pod(w, r), r.PathValue("container")
	if pod == nil {
		return
	}
	if status := statusOf(pod, container); status == nil || status.State.Running == nil {
		http.Error(w, fmt.Sprintf("container not found (%q)", container), http.StatusInternalServerError)
		return
	}
	remotecommand.ServeExec(w, r, executor{n.directory}, pod.Namespace+"/"+pod.Name, pod.UID, container,
		r.URL.Query()["command"], options, idleTimeout, streamsTimeout, remotecommandconsts.SupportedStreamingProtocols)
}

func (n *node) portForward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if pod := n.pod(w, r); pod != nil {
		portforward.ServePortForward(w, r, forwarder{}, pod.Name, pod.UID, options,
			idleTimeout, streamsTimeout, portforward.SupportedProtocols)
	}
}

// pod is the one in the path, or nil after an error was answered.
func (n *node) pod(w http.ResponseWriter, r *http.Request) *corev1.Pod {
	ctx, cancel := context.WithTimeout(r.Context(), streamsTimeout)
	defer cancel()
	pod, err := n.pods.CoreV1().Pods(r.PathValue("namespace")).Get(ctx, r.PathValue("pod"), metav1.GetOptions{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return nil
	}
	return pod
}

// statusOf is the status of a container, or nil if it has none.
func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == container {
				return &statuses[i]
			}
		}
	}
	return nil
}
