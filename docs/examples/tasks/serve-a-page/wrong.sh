#!/bin/sh
# The Service leads to a port where nothing listens.
# expect http.request: closed the connection without a response
set -eu
kubectl -n serve-a-page apply -f - <<'END'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: busybox:1.36
          imagePullPolicy: IfNotPresent
          command: [sh, -c, mkdir /tmp/www; echo good morning >/tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www]
          readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
END
