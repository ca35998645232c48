"""What all tests share: no time limit for an example, and a cache of their own."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Other people's work on the same cores must not fail a test, and in CI the examples are the same every time.
settings.register_profile("fairpass", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("fairpass")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Build graphs into a temporary directory, not the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRPASS_CACHE", str(tmp_path_factory.mktemp("graphs")))
        yield
