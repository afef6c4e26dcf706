"""Formats of the tokens that services issue, as data; each begins with a prefix.

No pattern is compiled here: :func:`may_have_token` rejects a text without importing ``re``, most texts because they
have no long run of letters and digits. A prefix that ends with one of ``_-.`` is not searched by itself: a text is
split at that character once, and the last characters before each are looked up in a set, which takes the same time for
ten formats as for a hundred.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

_ALNUM: Final = "[A-Za-z0-9]"
_URL_SAFE: Final = "[A-Za-z0-9_-]"
_HEX: Final = "[0-9a-f]"

# Rule, prefixes, pattern. A prefix in lower case is searched in a text in lower case, any other as it is.
TOKENS: Final = (
    ("age", "age-secret-key-", "AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("alibaba", "LTAI", f"LTAI{_ALNUM}{{16,20}}(?!{_ALNUM})"),
    ("artifactory", "AKCp", f"AKCp{_ALNUM}{{69}}"),
    ("atlassian", "ATATT3 ATCTT3", "AT[AC]TT3[A-Za-z0-9_=-]{60,}"),
    ("atlassian", "ATBB", f"ATBB{_ALNUM}{{28,}}"),
    ("aws", "AKIA ASIA ABIA ACCA", f"A(?:KI|SI|BI|CC)A[A-Z0-9]{{16}}(?!{_ALNUM})"),
    ("aws", "ABSK", "ABSK[A-Za-z0-9+/]{109,}=*"),
    ("azure", "q~", f"{_ALNUM}[A-Za-z0-9_~.]{{2}}[0-9]Q~[A-Za-z0-9_~.-]{{31,34}}"),
    ("brevo", "xkeysib-", f"xkeysib-{_HEX}{{64}}-{_ALNUM}{{16}}"),
    ("circleci", "ccipat_", f"CCIPAT_{_ALNUM}{{22}}_{_HEX}{{40}}"),
    ("databricks", "dapi", f"dapi{_HEX}{{32}}(?:-[0-9])?(?!{_ALNUM})"),
    ("digitalocean", "dop_ doo_ dor_", f"do[opr]_v1_{_HEX}{{32,}}"),
    ("docker", "dckr_", f"dckr_[op]at_{_URL_SAFE}{{20,}}"),
    ("doppler", ".pt. .st. .ct.", f"dp\\.[psc]t\\.(?:{_URL_SAFE}{{2,35}}\\.)?{_ALNUM}{{40,}}"),
    ("duffel", "duffel_", f"duffel_(?:test|live)_{_URL_SAFE}{{43}}"),
    ("dynatrace", "dt0c01.", "dt0c01\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}"),
    ("e2b", "e2b_", f"e2b_{_HEX}{{40}}"),
    ("facebook", "EAA", f"EAA[A-Z]{_ALNUM}{{90,}}"),
    ("figma", "figd_", f"figd_{_URL_SAFE}{{40,}}"),
    ("flyio", "fo1_", f"fo1_{_URL_SAFE}{{43}}"),
    ("flyio", "fm2_ fm1r_ fm1a_", "fm(?:2|1[ar])_[A-Za-z0-9+/]{100,}=*"),
    ("github", "ghp_ gho_ ghu_ ghs_ ghr_", f"gh[pousr]_{_ALNUM}{{20,}}"),
    ("github", "github_pat_", "github_pat_[A-Za-z0-9_]{20,}"),
    (
        "gitlab",
        "glpat- gldt- glrt- glft- glptt- glcbt-",
        f"gl(?:pat|[drf]t|ptt|cbt)-{_URL_SAFE}{{16,}}(?:\\.[0-9a-z]{{2,}})*",
    ),
    ("google", "AIza", f"AIza{_URL_SAFE}{{30,}}"),
    ("google", "ya29.", f"ya29\\.{_URL_SAFE}{{20,}}"),
    ("google", "gocspx-", f"GOCSPX-{_URL_SAFE}{{24,}}"),
    ("google", "//0", f"1//0{_URL_SAFE}{{40,}}"),
    ("grafana", "glc_", "glc_[A-Za-z0-9+/]{32,}=*"),
    ("grafana", "glsa_", f"glsa_{_ALNUM}{{32}}_[A-Fa-f0-9]{{8}}"),
    ("groq", "gsk_", f"gsk_{_ALNUM}{{40,}}"),
    ("heroku", "hrku-", f"HRKU-{_URL_SAFE}{{30,}}"),
    ("hubspot", "pat-", f"pat-(?:na|eu|ap)[0-9]-{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"),
    ("huggingface", "hf_", f"hf_{_ALNUM}{{20,}}"),
    ("huggingface", "api_org_", f"api_org_{_ALNUM}{{30,}}"),
    ("jina", "jina_", f"jina_{_ALNUM}{{32,}}[A-Za-z0-9_-]*"),
    ("jwt", "eyJ", "eyJ[A-Za-z0-9_-]{6,}+\\.[A-Za-z0-9_-]{6,}+(?:\\.[A-Za-z0-9_-]*+){1,3}"),
    ("langsmith", "lsv2_", f"lsv2_(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{10}}"),
    ("linear", "lin_", f"lin_(?:api|oauth)_{_ALNUM}{{32,}}"),
    ("mailgun", "key-", f"key-{_HEX}{{32}}(?!{_ALNUM})"),
    ("netlify", "nfp_", f"nfp_{_ALNUM}{{36,}}"),
    ("newrelic", "nrak-", "NRAK-[A-Z0-9]{27}"),
    ("notion", "ntn_", f"ntn_{_ALNUM}{{40,}}"),
    ("notion", "secret_", f"secret_{_ALNUM}{{43}}(?!{_ALNUM})"),
    ("npm", "npm_", f"npm_{_ALNUM}{{30,}}"),
    ("nvidia", "nvapi-", f"nvapi-{_URL_SAFE}{{40,}}"),
    ("1password", "A3-", "A3-[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"),
    ("openshift", "sha256~", f"sha256~{_URL_SAFE}{{43}}"),
    ("perplexity", "pplx-", f"pplx-{_ALNUM}{{40,}}"),
    ("pinecone", "pcsk_", f"pcsk_{_ALNUM}{{4,8}}_{_ALNUM}{{40,}}"),
    ("planetscale", "pscale_", "pscale_(?:tkn|oauth|pw)_[A-Za-z0-9=._-]{32,64}"),
    ("posthog", "phx_", f"phx_{_ALNUM}{{40,}}"),
    ("postman", "pmak-", f"PMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    ("prefect", "pnu_", f"pnu_{_ALNUM}{{36}}"),
    ("private-key", "LS0tLS1", "LS0tLS1CRUdJTi[A-Za-z0-9+/]{40,}+=*"),
    ("pulumi", "pul-", f"pul-{_HEX}{{40}}"),
    ("pypi", "pypi-", f"pypi-{_URL_SAFE}{{16,}}"),
    ("replicate", "r8_", f"r8_{_ALNUM}{{37}}(?!{_ALNUM})"),
    ("rubygems", "rubygems_", f"rubygems_{_HEX}{{48}}"),
    ("sendgrid", "SG.", f"SG\\.{_URL_SAFE}{{16,32}}\\.{_URL_SAFE}{{32,64}}"),
    ("sentry", "sntrys_", "sntrys_[A-Za-z0-9+/=_-]{40,}"),
    ("sentry", "sntryu_", f"sntryu_{_HEX}{{64}}"),
    ("shippo", "shippo_", f"shippo_(?:live|test)_{_HEX}{{40}}"),
    ("shopify", "shpat_ shpca_ shppa_ shpss_", "shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    # A part that mixes letters and digits: sk-learn-v2 and sk-loading-indicator are names.
    (
        "sk",
        "sk-",
        (f"sk-(?={_URL_SAFE}*?(?<!{_ALNUM})(?=[A-Za-z]*[0-9])(?:(?=[0-9]*[A-Za-z]){_ALNUM}{{8}}|{_ALNUM}{{16}}))"
        f"{_URL_SAFE}{{13,}}"),
    ),
    ("slack", "xox", "xox[abeoprs]-[A-Za-z0-9-]{11,}"),
    ("slack", "xapp-", "xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    ("sourcegraph", "sgp_", "sgp_(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{40}"),
    ("square", "sq0atp- sq0csp-", f"sq0(?:at|cs)p-{_URL_SAFE}{{22,}}"),
    ("square", "EAAA", f"EAAA{_URL_SAFE}{{50,}}"),
    ("stripe", "k_live_ k_test_ k_prod_", f"[sr]k_(?:live|test|prod)_{_ALNUM}{{8,}}"),
    ("stripe", "whsec_", "whsec_[A-Za-z0-9+/]{24,}=*"),
    ("supabase", "sbp_", f"sbp_{_HEX}{{40}}"),
    ("tavily", "tvly-", f"tvly-{_URL_SAFE}{{24,}}"),
    ("telegram", ":AA", f"[0-9]{{6,12}}:AA{_URL_SAFE}{{32,}}"),
    ("terraform", ".atlasv1.", f"{_ALNUM}{{14}}\\.atlasv1\\.{_URL_SAFE}{{60,}}"),
    ("twilio", "SK", f"SK{_HEX}{{32}}(?!{_ALNUM})"),
    ("typeform", "tfp_", "tfp_[A-Za-z0-9=._-]{40,}"),
    ("vault", "hvs. hvb. hvr.", f"hv[sbr]\\.{_URL_SAFE}{{20,}}"),
    ("xai", "xai-", f"xai-{_ALNUM}{{60,}}"),
)  # fmt: skip

# Every format has this many characters of this kind in a row, unlike most texts; for exceptions see SHORTER.
_RUN: Final = 16
_RUN_CHARACTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_X: Final = b"x"
AS_RUNS: Final = bytes(_X[0] if byte in _RUN_CHARACTERS else ord(" ") for byte in range(256))
A_RUN: Final = _X * _RUN
# Prefixes may have more characters.
_AS_WORDS: Final = bytes(byte if byte in _RUN_CHARACTERS + b".:/+=~" else ord(" ") for byte in range(256))
_LONG: Final = 65_536  # bytes of a text
_TAIL: Final = 3  # characters before a separator that are looked up
# Prefixes with these tails are searched by themselves: the tails are those of common words (`live_`, `app-`).
_COMMON_TAILS: Final = frozenset(("ale", "api", "app", "ems", "est", "ive", "org", "rod"))
# Prefixes of formats whose tokens may have only short runs: web tokens, and PEM in base64.
SHORTER: Final = (("J", "eyJ"), ("L", "LS0tLS1"))
# A short prefix, which is in every blob of base64: searched with the digits after it.
_SHORT: Final = "SK"
_SHORT_DIGITS: Final = 32
_HEXADECIMAL: Final = frozenset("0123456789abcdef")
# Base64 of `{"`, of `{ "`, of `{` and a line feed, of `[{"`.
BASE64_JSON: Final = ("eyJ", "eyAi", "ewo", "W3si")


def _gate(prefix: str) -> str:
    """Return a character of a prefix that few texts have."""
    capital = min((character for character in prefix if character.isupper()), default="")
    return capital or next((character for character in prefix if character in "_-.~:/"), "") or max(prefix)


class _Prefixes:
    """Prefixes of all formats, by the method of search; values are positions in :data:`TOKENS`.

    Attributes:
        tails: by separator, then by the characters before it.
        lowered: by a character of the prefix, for a text in lower case.
        exact: by a character of the prefix, for a text as it is.
        short: the formats of the short prefix.
    """

    __slots__ = ("exact", "lowered", "short", "tails")

    def __init__(self) -> None:
        self.short: list[int] = []
        self.tails: dict[str, dict[str, list[int]]] = {}
        self.lowered: dict[str, dict[str, list[int]]] = {}
        self.exact: dict[str, dict[str, list[int]]] = {}
        for position, (_, prefixes, _) in enumerate(TOKENS):
            for prefix in prefixes.split():
                separator = prefix[-1]
                tail = prefix[:-1].rpartition(separator)[2][-_TAIL:]
                is_split = separator in "_-." and prefix.islower() and tail not in _COMMON_TAILS
                if prefix == _SHORT:
                    self.short.append(position)
                elif is_split and (len(tail) == _TAIL or prefix[0] == separator):
                    self.tails.setdefault(separator, {}).setdefault(tail, []).append(position)
                else:
                    table = self.lowered if prefix == prefix.lower() else self.exact
                    table.setdefault(_gate(prefix), {}).setdefault(prefix, []).append(position)
        for prefix in BASE64_JSON:
            self.exact.setdefault(_gate(prefix), {}).setdefault(prefix, [])

    def found(self, text: str) -> Iterator[list[int]]:
        """Yield the positions of each prefix in a text."""
        lowered = text.lower()
        for table, searched in ((self.lowered, lowered), (self.exact, text)):
            for gate, prefixes in table.items():
                if gate in searched:
                    for prefix, positions in prefixes.items():
                        if prefix in searched:
                            yield positions
        after_short = (piece[:_SHORT_DIGITS] for piece in text.split(_SHORT)[1:])
        if any(len(digits) == _SHORT_DIGITS and _HEXADECIMAL.issuperset(digits) for digits in after_short):
            yield self.short
        for separator, tails in self.tails.items():
            if separator in lowered:
                for tail in tails.keys() & {piece[-_TAIL:] for piece in lowered.split(separator)}:
                    yield tails[tail]


_PREFIXES: Final = _Prefixes()


def may_have_token(text: bytes) -> bool:
    """Return True if a text with a run may have a token of one of the formats, or JSON in base64."""
    return any(True for _ in _PREFIXES.found(_long_words(text)))


def candidates(text: bytes) -> list[tuple[str, str]]:
    """Return rule and pattern of the formats with a prefix in a text, in the order of :data:`TOKENS`."""
    shorter = [prefix for _, prefix in SHORTER if prefix.encode() in text]
    found = {position for prefix in shorter for position in _PREFIXES.exact[_gate(prefix)][prefix]}
    if A_RUN in text.translate(AS_RUNS):
        found.update(*_PREFIXES.found(_long_words(text)))
    return [(TOKENS[position][0], TOKENS[position][2]) for position in sorted(found)]


def _long_words(text: bytes) -> str:
    """Return the words that may hold a token; a long text entirely, which takes less memory than its words."""
    if len(text) > _LONG:
        return text.decode("latin-1")
    shortest = 1 if b"\x1b" in text or b"1b[" in text else _RUN  # a control sequence may follow a prefix
    return b" ".join(word for word in text.translate(_AS_WORDS).split() if len(word) >= shortest).decode("latin-1")
