"""How the programs of a control plane are told to be small, quick, alone and on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ISSUER = "https://kubernetes.default.svc.cluster.local"
UNUSED = "http://127.0.0.1:1"  # etcd wants addresses to tell to its peers; it has none
MANY = "1000"  # requests a second: clients of one's own cluster needn't be slow


def flags(**values: object) -> list[str]:
    """Command line flags: `secure_port=1` is --secure-port=1."""
    told = {True: "true", False: "false"}
    return [
        f"--{name.replace('_', '-')}={told.get(value, value) if isinstance(value, bool) else value}"
        for name, value in values.items()
    ]


def etcd(directory: Path) -> list[str]:
    """A store that no other user can reach (sockets in a private folder) and that does not wait for the disk."""
    return flags(
        data_dir=directory / "etcd",
        listen_client_urls=f"unix://{directory}/etcd.sock",
        advertise_client_urls=UNUSED,
        listen_peer_urls=f"unix://{directory}/peer.sock",
        initial_advertise_peer_urls=UNUSED,
        initial_cluster=f"default={UNUSED}",
        unsafe_no_fsync=True,
        log_level="warn",
    )


def api_server(directory: Path, port: int) -> list[str]:
    """Everything on: authentication by certificates, tokens and service accounts, RBAC, priority and fairness."""
    return flags(
        etcd_servers=f"unix://{directory}/etcd.sock",
        bind_address="127.0.0.1",
        external_hostname="127.0.0.1",
        secure_port=port,
        permit_port_sharing=True,
        tls_cert_file=directory / "server.crt",
        tls_private_key_file=directory / "server.key",
        client_ca_file=directory / "ca.crt",
        token_auth_file=directory / "tokens.csv",
        authorization_mode="RBAC",
        service_account_issuer=ISSUER,
        service_account_key_file=directory / "service-accounts.pub",
        service_account_signing_key_file=directory / "service-accounts.key",
        service_cluster_ip_range="10.96.0.0/16",
        endpoint_reconciler_type="none",
        kubelet_preferred_address_types="InternalIP",
        kubelet_certificate_authority=directory / "ca.crt",
        kubelet_client_certificate=directory / "kube-apiserver.crt",
        kubelet_client_key=directory / "kube-apiserver.key",
        allow_privileged=True,
        shutdown_watch_termination_grace_period="1s",  # else it waits a minute for those who watch
    )


def controller_manager(directory: Path, kubeconfig: Path) -> list[str]:
    """All controllers; they also sign certificates that are asked for."""
    return flags(
        kubeconfig=kubeconfig,
        secure_port=0,
        leader_elect=False,
        root_ca_file=directory / "ca.crt",
        service_account_private_key_file=directory / "service-accounts.key",
        cluster_signing_cert_file=directory / "ca.crt",
        cluster_signing_key_file=directory / "ca.key",
        kube_api_qps=MANY,
        kube_api_burst=MANY,
    )


def scheduler(_directory: Path, kubeconfig: Path) -> list[str]:
    """The usual one."""
    return flags(kubeconfig=kubeconfig, secure_port=0, leader_elect=False, kube_api_qps=MANY, kube_api_burst=MANY)


def node_server(directory: Path, kubeconfig: Path) -> list[str]:
    """Answers the API server, and nobody else, in place of all kubelets."""
    return flags(
        kubeconfig=kubeconfig,
        directory=directory / "containers",
        tls_cert_file=directory / "server.crt",
        tls_private_key_file=directory / "server.key",
        client_ca_file=directory / "ca.crt",
        port_file=directory / "node-server.port",
    )


def kwok(directory: Path, kubeconfig: Path) -> list[str]:
    """Plays all nodes and their pods by the stages in kwok.yaml."""
    return flags(
        kubeconfig=kubeconfig,
        config=directory / "kwok.yaml",
        manage_all_nodes=True,
        node_lease_duration_seconds=40,
        node_ip="127.0.0.1",
    )
