import pytest

# So that a failed assertion of the battery says what it compared, as those of test modules do.
pytest.register_assert_rewrite("tests.methods.battery", "tests.methods.ingredients")
