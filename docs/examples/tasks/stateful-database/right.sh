#!/bin/sh
set -eu
kubectl -n stateful-database apply -f - <<'END'
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
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
  volumeClaimTemplates:
    - metadata: {name: data}
      spec:
        storageClassName: stateful-database
        accessModes: [ReadWriteOnce]
        resources: {requests: {storage: 65536Ki}}
END
