#!/bin/sh
# The data of a pod is lost with the pod.
# expect kubernetes.assert: count: expected to equal 2, got 0
# expect kubernetes.assert: persistentVolumeClaim
set -eu
kubectl -n stateful-database apply -f - <<'END'
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: db
          image: busybox:1.36
          imagePullPolicy: IfNotPresent
          command: [sleep, "100000"]
          volumeMounts: [{name: data, mountPath: /var/lib/db}]
      volumes: [{name: data, emptyDir: {}}]
END
kubectl -n stateful-database rollout status statefulset db --timeout 60s
