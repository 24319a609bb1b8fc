"""What is kept, for how long, and that it is computed once."""

import threading
import time

from graphfcl.active.contract import Memory


def test_a_result_is_computed_once_and_the_oldest_goes_first() -> None:
    memory, computed = Memory(most=2), list[str]()

    def find(key: str) -> str:
        def compute() -> str:
            computed.append(key)
            return key.upper()

        return memory.find(key, compute)

    assert [find(key) for key in "abaca"] == ["A", "B", "A", "C", "A"]
    assert computed == ["a", "b", "c"], "a was asked for after b, so b had to go"
    assert find("b") == "B"
    assert computed == ["a", "b", "c", "b"]


def test_a_result_of_none_is_kept_too() -> None:
    memory, computed = Memory(), list[int]()
    for _ in range(3):
        assert memory.find("key", lambda: computed.append(1)) is None
    assert computed == [1]


def test_threads_wait_for_one_computation() -> None:
    memory, computed = Memory(), list[int]()

    def compute() -> int:
        time.sleep(0.05)
        computed.append(1)
        return 7

    threads = [threading.Thread(target=memory.find, args=("key", compute)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert computed == [1]
