"""The side of Mecoin's memory that is taught, against plain loops."""

import numpy as np
import torch

from graphfcl.methods.mecoin.memory import (
    Batches,
    Books,
    MecoinSettings,
    Table,
    Teacher,
    balanced_mean,
    both_logits,
    node_losses,
    trained_copy,
)

SETTINGS = MecoinSettings(size=6, books=3, keys=4, key_size=4, student_hidden=5, student_dropout=0.0)


def random(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def table_of(classes: int = 3) -> Table:
    table = Table.empty(SETTINGS, classes, random())
    with torch.no_grad():
        table.values.copy_(torch.randn(12, classes, generator=random(1)))
    return table


def test_logits_are_three_times_the_mean_of_the_values_found() -> None:
    table, places = table_of(), torch.tensor([[0, 5, 11], [3, 4, 8]])
    found = table.memory(places).detach().numpy()
    for row, wanted in zip(found, places.tolist(), strict=True):
        np.testing.assert_allclose(row, 3 * np.mean([table.values[j].tolist() for j in wanted], axis=0), rtol=1e-5)


def test_the_loss_is_that_of_a_loop() -> None:
    memory, student = (torch.randn(6, 4, generator=random(seed), dtype=torch.float64) for seed in (0, 1))
    labels = torch.tensor([0, 1, 2, 3, 1, 1])
    found = node_losses(memory, student, labels, 0.1).numpy()
    for row in range(6):
        p, q = (np.exp(each[row]) / np.exp(each[row]).sum() for each in (student.numpy(), memory.numpy()))
        target = np.full(4, 0.1 / 4)
        target[labels[row]] += 0.9
        there = sum(p[c] * np.log(p[c] / q[c]) for c in range(4))
        back = sum(q[c] * np.log(q[c] / p[c]) for c in range(4))
        np.testing.assert_allclose(found[row], (there + back) / 2 - (target * np.log(p)).sum(), rtol=1e-9)
    by_class = [np.mean(found[labels.numpy() == c]) for c in range(4)]
    np.testing.assert_allclose(float(balanced_mean(torch.from_numpy(found), labels)), np.mean(by_class), rtol=1e-9)


def test_the_loss_stays_finite_where_a_softmax_rounds_to_zero() -> None:
    memory = torch.tensor([[0.0, 300.0, 0.0]], requires_grad=True)
    student = torch.tensor([[300.0, 0.0, -300.0]], requires_grad=True)
    loss = node_losses(memory, student, torch.tensor([0]), 0.1).sum()
    loss.backward()
    assert torch.isfinite(loss)
    for each in (memory, student):
        assert each.grad is not None
        assert torch.isfinite(each.grad).all()


def test_a_grown_table_keeps_its_columns_and_shares_nothing() -> None:
    table, points, labels = table_of(), torch.randn(4, 6, generator=random(2)), torch.tensor([3, 3, 4, 4])
    other = table.with_classes(points, labels, 5)
    assert other.values.shape == (12, 5)
    assert torch.equal(other.values[:, :3], table.values)
    assert not other.values[:, 3:].any()
    asked = torch.randn(7, 6, generator=random(3))
    torch.testing.assert_close(other.student(asked)[:, :3], table.student(asked))
    hidden = table.hidden(points).detach()
    column = hidden[2:].mean(dim=0) - table.centre
    cosine = torch.cosine_similarity(other.outer.weight[:, 4].detach(), column, dim=0)
    assert float(cosine) > 0.999
    same = table.with_classes(points[:0], labels[:0], 3)
    before = {name: value.clone() for name, value in table.state_dict().items()}
    batches = Batches(points, torch.tensor([0, 1, 2, 0]), torch.zeros(1, 4, 3, dtype=torch.int32))
    Teacher(same, SETTINGS, 0.1, random()).teach(batches, 3, "test")
    for name, value in table.state_dict().items():
        assert torch.equal(value, before[name])
        if name != "centre":
            assert not torch.equal(same.state_dict()[name], value)


def test_values_learn_from_the_student_alone_and_only_where_nodes_were_found() -> None:
    """Whatever the labels are, the first step moves the values towards what the student says."""
    points, places = torch.randn(3, 6, generator=random(2)), torch.tensor([[[0, 4, 8], [1, 4, 9], [0, 5, 9]]])
    moved = []
    for labels in (torch.tensor([0, 1, 2]), torch.tensor([2, 0, 1])):
        table = table_of()
        before = table.values.detach().clone()
        Teacher(table, SETTINGS, 0.01, random()).teach(Batches(points, labels, places), 1, "test")
        moved.append((table.values.detach() - before).sign())
    assert torch.equal(moved[0], moved[1])
    touched = sorted(torch.unique(places).tolist())
    assert moved[0].abs().sum(dim=1).nonzero().flatten().tolist() == touched


def test_a_large_batch_has_every_class_equally_often() -> None:
    labels = torch.tensor([0] * 900 + [1] * 90 + [2] * 10)
    points = labels[:, None].float().expand(-1, 6)
    batches = Batches(points, labels, torch.arange(1000, dtype=torch.int32)[None, :, None].expand(4, -1, 3))
    part = batches.batch(600, random())
    assert part.points.shape == (600, 6)
    np.testing.assert_allclose(torch.bincount(part.labels).numpy() / 600, 1 / 3, atol=0.07)
    assert torch.equal(part.points[:, 0].long(), part.labels)
    assert torch.equal(labels[part.places[0, :, 0].long()], part.labels)
    assert batches.batch(1000, random()).points is points


def test_a_session_is_learned_by_student_and_memory() -> None:
    books = Books(6, SETTINGS, random())
    centres = 4 * torch.eye(6)[:3]
    labels = torch.arange(3).repeat(20)
    points = centres[labels] + 0.3 * torch.randn(60, 6, generator=random(4))
    books.draw_keys(points, random(5))
    start = Table.empty(SETTINGS, 2, random())
    new = (points[labels == 2][:5], labels[labels == 2][:5])
    batches = Batches.draw(books, points, labels, 4, random(6))
    assert batches.places.shape == (4, 60, 3)
    found = trained_copy(start, new, batches, 3, (200, 0.02), SETTINGS, random(6))
    logits = both_logits(found, points, books.look_up(points))
    answers = {who: each.argmax(dim=1).numpy() for who, each in logits.items()}
    assert (answers["student"] == labels.numpy()).mean() > 0.95
    assert (answers["memory"] == labels.numpy()).mean() > 0.9
    untouched = trained_copy(start, new, batches, 3, (0, 0.0), SETTINGS, random(6))
    assert not untouched.values.any()
