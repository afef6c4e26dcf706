#!/bin/sh
# Two items of `from`, where one with a port was meant: all pods of the namespace may connect.
# expect kubernetes.assert: spec.ingress[0].from[1]: expected nothing, found {"podSelector": {}}
set -eu
kubectl -n network-policy apply -f - <<'END'
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db}
spec:
  podSelector: {matchLabels: {app: db}}
  policyTypes: [Ingress]
  ingress:
    - from: [{podSelector: {matchLabels: {app: api}}}, {podSelector: {}}]
      ports: [{protocol: TCP, port: 5432}]
END
