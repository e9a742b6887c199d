"""API keys of providers, from the variables of a deployment."""

from typing import Final, Literal

from pydantic import SecretStr

from mnemon_infra.config import Deployment

NO_KEY: Final = "none"
"""Key that is sent if no key is set: the SDKs require a key, but a private server may not."""

KeySetting = Literal["model", "anthropic", "google", "embedding"]
"""Beginning of the names of the fields `..._api_key` and `..._url` of `Deployment`."""

_KEYS: Final[dict[KeySetting, tuple[str, str]]] = {
    "model": ("the provider openai", "MNEMON_MODEL_API_KEY or OPENAI_API_KEY"),
    "anthropic": ("the provider anthropic", "ANTHROPIC_API_KEY"),
    "google": ("the provider google", "GEMINI_API_KEY or GOOGLE_API_KEY"),
    "embedding": ("embedding.provider=openai", "MNEMON_EMBEDDING_API_KEY or OPENAI_API_KEY"),
}
"""For error messages: the provider or setting that needs a key, and the environment variables that set it."""


def read_api_key(deployment: Deployment, setting: KeySetting, error: type[Exception]) -> str:
    """Return the key of a provider. Without a key, return `NO_KEY` if the address of a server is set.

    Raises:
        error (the class that the caller passes): neither a key nor an address is set, or the key has
            characters that no request can carry.
    """
    provider, variables = _KEYS[setting]
    secret: SecretStr | None = getattr(deployment, f"{setting}_api_key")
    key = "" if secret is None else secret.get_secret_value().strip()
    if not key and getattr(deployment, f"{setting}_url") is None:
        raise error(
            f"no key is set for {provider}: set {variables}, or MNEMON_{setting.upper()}_URL for a server "
            "without a key"
        )
    if not (key.isascii() and key.isprintable()):
        raise error(
            f"{variables} has characters other than printable ASCII: set the key again, without line "
            "breaks or typographic quotation marks"
        )
    return key or NO_KEY
