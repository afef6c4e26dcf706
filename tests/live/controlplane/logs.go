package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const followPoll = 200 * time.Millisecond

// said finds what a shell's text prints: `echo TEXT`, with or without quotes.
var said = regexp.MustCompile(`\becho ("[^"]*"|'[^']*'|[^;&|>]*)`)

// logs answers with what the container's command would say: a line for each `echo` in it, one millisecond apart from
// its start on. Followed, they end with the container.
func (n *node) logs(w http.ResponseWriter, r *http.Request) {
	pod, container := n.pod(w, r), r.PathValue("container")
	if pod == nil {
		return
	}
	query := r.URL.Query()
	started, err := startOf(pod, container, query.Get("previous") == "true")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := selected(lines(pod, container), started, query.Get)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprint(w, text)
	if query.Get("follow") == "true" {
		n.follow(w, r, pod, container)
	}
}

// startOf is when the container began whose logs are asked for; an error, in a kubelet's words, if none has.
func startOf(pod *corev1.Pod, container string, previous bool) (time.Time, error) {
	status := statusOf(pod, container)
	if status == nil {
		return time.Time{}, fmt.Errorf("container %q in pod %q is not available", container, pod.Name)
	}
	last := status.LastTerminationState.Terminated
	switch {
	case previous && last == nil:
		return time.Time{}, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
	case previous:
		return last.StartedAt.Time, nil
	case status.State.Running != nil:
		return status.State.Running.StartedAt.Time, nil
	case status.State.Terminated != nil:
		return status.State.Terminated.StartedAt.Time, nil
	case last != nil:
		return last.StartedAt.Time, nil
	}
	reason := ""
	if waiting := status.State.Waiting; waiting != nil {
		reason = waiting.Reason
	}
	switch reason {
	case "ErrImagePull":
		reason = "image can't be pulled"
	case "ImagePullBackOff":
		reason = "trying and failing to pull image"
	}
	return time.Time{}, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod.Name, reason)
}

func lines(pod *corev1.Pod, container string) []string {
	var found []string
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, candidate := range containers {
			if candidate.Name != container {
				continue
			}
			text := strings.Join(append(append([]string{}, candidate.Command...), candidate.Args...), " ")
			for _, match := range said.FindAllStringSubmatch(text, -1) {
				found = append(found, strings.Trim(strings.TrimSpace(match[1]), `"'`))
			}
		}
	}
	return found
}

// selected is what the query (PodLogOptions) leaves of the lines, each with its end.
func selected(lines []string, started time.Time, query func(string) string) (string, error) {
	since, err := beginning(query)
	if err != nil {
		return "", err
	}
	var chosen []string
	for i, line := range lines {
		at := started.Add(time.Duration(i) * time.Millisecond)
		if at.Before(since) {
			continue
		}
		if query("timestamps") == "true" {
			line = at.UTC().Format(time.RFC3339Nano) + " " + line
		}
		chosen = append(chosen, line+"\n")
	}
	if tail, err := strconv.Atoi(query("tailLines")); err == nil && tail < len(chosen) {
		chosen = chosen[len(chosen)-tail:]
	}
	text := strings.Join(chosen, "")
	if limit, err := strconv.Atoi(query("limitBytes")); err == nil && limit < len(text) {
		text = text[:limit]
	}
	return text, nil
}

// beginning is the time before which nothing is wanted.
func beginning(query func(string) string) (time.Time, error) {
	if text := query("sinceTime"); text != "" {
		return time.Parse(time.RFC3339, text)
	}
	if text := query("sinceSeconds"); text != "" {
		seconds, err := strconv.Atoi(text)
		return time.Now().Add(-time.Duration(seconds) * time.Second), err
	}
	return time.Time{}, nil
}

// follow keeps the answer open while the container runs.
func (n *node) follow(w http.ResponseWriter, r *http.Request, pod *corev1.Pod, container string) {
	flusher := http.NewResponseController(w)
	for {
		_ = flusher.Flush()
		status := statusOf(pod, container)
		if status == nil || status.State.Running == nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(followPoll):
		}
		current, err := n.pods.CoreV1().Pods(pod.Namespace).Get(r.Context(), pod.Name, metav1.GetOptions{})
		if err != nil || current.UID != pod.UID {
			return
		}
		pod = current
	}
}
