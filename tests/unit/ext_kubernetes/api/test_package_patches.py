"""Parts of the client library without the whole of it: each test in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

START = """
import sys
from ext_kubernetes.api import package_patches
from ext_sdk import deferred_imports
package_patches.warm_up()
def waiting():
    return {name for name in deferred_imports.MODULES if isinstance(sys.modules.get(name), deferred_imports.Deferred)}
"""


def passes(code: str, start: str = START) -> None:
    ran = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr


def test_what_sends_requests_is_there_and_the_rest_waits() -> None:
    passes(
        "from kubernetes.dynamic import DynamicClient\n"
        "from kubernetes.client.api_client import ApiClient\n"
        "assert waiting() == deferred_imports.MODULES.keys() & sys.modules.keys(), waiting()\n"
        "assert not any(name.startswith('kubernetes.client.models.') for name in sys.modules)\n"
        "assert 'kubernetes.leaderelection' not in sys.modules\n"
    )


def test_whoever_asks_for_more_finds_it() -> None:
    passes(
        "import kubernetes\n"
        "from kubernetes.client import CoreV1Api, V1Pod, ApiClient\n"
        "from kubernetes.client.api_client import ApiClient as Same\n"
        "assert ApiClient is Same and CoreV1Api(ApiClient()) is not None\n"
        "assert kubernetes.watch.Watch and kubernetes.utils.create_from_yaml and kubernetes.stream.stream\n"
        "from importlib.metadata import version\n"
        "assert kubernetes.__version__ == version('kubernetes')\n"
        "import oauthlib.oauth2\n"
        "assert issubclass(oauthlib.oauth2.rfc6749.errors.InvalidClientIdError, Exception)\n"
    )


def test_a_name_that_no_package_has_is_an_error() -> None:
    passes(
        "import kubernetes.client\n"
        "try:\n    kubernetes.client.NoSuchThing\n"
        "except AttributeError as error:\n    assert 'NoSuchThing' in str(error)\n"
        "else:\n    raise AssertionError\n"
    )


def test_a_class_that_is_called_later_is_the_real_one_then() -> None:
    passes(
        "from kubernetes.config.kube_config import OAuth2Session\n"
        "assert 'requests_oauthlib' in waiting()\n"
        "made = OAuth2Session(client_id='me')\n"
        "import requests_oauthlib\n"
        "assert isinstance(made, requests_oauthlib.OAuth2Session)\n"
    )


@pytest.mark.skipif(int(version("kubernetes").partition(".")[0]) < 37, reason="older versions have no SecretStr")
def test_a_class_has_no_instances_before_its_module_runs_and_the_real_ones_after_it() -> None:
    passes(
        "from kubernetes.client.api_client import SecretStr\n"
        "assert not isinstance('text', SecretStr) and 'pydantic' in waiting()\n"
        "import pydantic\n"
        "made = pydantic.types.SecretStr('text')\n"
        "assert isinstance(SecretStr('text'), pydantic.SecretStr)\n"
        "assert isinstance(made, SecretStr) and not isinstance('text', SecretStr)\n"
        "from kubernetes.client.api_client import ApiResponse, parse\n"
        "assert ApiResponse(status_code=200, data='text', raw_data=b'').data == 'text'\n"
        "assert parse('2026-01-02').day == 2\n"
    )


def test_a_module_that_is_imported_by_star_has_all_its_names() -> None:
    passes(
        "import yaml\n"
        "assert 'yaml' in waiting() and yaml.CSafeLoader('a: 1').get_single_data() == {'a': 1}\n"
        "assert {'yaml', 'yaml.reader', 'yaml.scanner'} <= waiting()\n"
        "assert yaml.safe_load('a: 1') == {'a': 1} and yaml.dump({'a': 1}) == 'a: 1\\n'\n"
        "assert not {'yaml', 'yaml.reader', 'yaml.scanner'} & waiting()\n"
        "import urllib3\n"
        "assert urllib3.http2.probe and 'urllib3.http2' in waiting() and urllib3.http2.inject_into_urllib3\n"
    )


@pytest.mark.parametrize("text", ["a: [", "a: \x01", "a: *b", "\ta: 1", "a: 1\na: 2", "!!foo a", "%YAML 3\n---\n"])
def test_errors_of_the_yaml_library_are_those_of_the_complete_one(text: str) -> None:
    told = "try:\n    load_yaml(TEXT)\nexcept NotYaml as error:\n    print(repr(error), type(error.__cause__))\n"
    told = "from ext_kubernetes.objects.yaml_loader import NotYaml, load_yaml\n" + told.replace("TEXT", repr(text))
    partly, whole = (
        subprocess.run([sys.executable, "-c", start + told], capture_output=True, text=True, timeout=120, check=True)
        for start in (START, "import yaml\n")
    )
    assert partly.stdout == whole.stdout != ""


def test_a_package_whose_parts_do_not_go_by_themselves_is_imported_whole() -> None:
    passes(
        "package_patches.warm_up()\n"
        "assert waiting() == set() and 'kubernetes.leaderelection' in sys.modules\n"
        "from kubernetes.dynamic import DynamicClient\n",
        "import sys\n"
        "from ext_kubernetes.api import package_patches\n"
        "from ext_sdk import deferred_imports\n"
        "package_patches.MODULES['kubernetes.client']['ApiClient'] = 'kubernetes.moved_elsewhere'\n"
        "def waiting():\n"
        "    deferred = deferred_imports.Deferred\n"
        "    return {name for name in deferred_imports.MODULES if isinstance(sys.modules.get(name), deferred)}\n",
    )


def test_what_somebody_has_imported_already_is_left_alone() -> None:
    passes("assert waiting() == set() and sys.modules['kubernetes'] is kubernetes\n", "import kubernetes\n" + START)
