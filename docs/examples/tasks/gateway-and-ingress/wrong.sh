#!/bin/sh
# Requests for /cart/7 are not sent to the Service.
# expect kubernetes.assert: pathType: expected "Prefix", found "Exact"
set -eu
kubectl -n gateway-and-ingress apply -f - <<'END'
apiVersion: shop.example.com/v1
kind: Gateway
metadata: {name: front}
spec:
  listeners:
    - {name: http, port: 80}
    - {name: https, port: 443}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front}
spec:
  rules:
    - host: shop.example.com
      http:
        paths:
          - {path: /cart, pathType: Exact, backend: {service: {name: cart, port: {number: 8080}}}}
END
