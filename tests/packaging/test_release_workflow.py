"""The workflow that publishes a release."""

import re

from tests.packaging.project import PROJECT, ROOT

TEXT = (ROOT / ".github" / "workflows" / "release.yml").read_text()


def test_actions_are_pinned_to_commits() -> None:
    used = re.findall(r"uses: (\S+)(.*)", TEXT)
    assert len(used) > 5
    for action, comment in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


def test_only_the_jobs_that_sign_get_a_token() -> None:
    assert "\npermissions: {}\n" in TEXT
    jobs = dict(re.findall(r"^  (\w+):\n((?:    .*\n|\n)+)", TEXT.partition("jobs:\n")[2], re.MULTILINE))
    assert set(jobs) == {"build", "test", "attest", "publish"}
    assert {name for name, text in jobs.items() if "id-token: write" in text} == {"attest", "publish"}
    assert "secrets." not in TEXT


def test_the_pythons_are_those_of_the_classifiers() -> None:
    versions = re.search(r"python: \[(.*)\]", TEXT)
    assert versions is not None
    declared = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)]
    assert re.findall(r'"([\d.]+)"', versions[1]) == declared
