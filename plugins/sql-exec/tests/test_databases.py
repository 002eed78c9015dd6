"""Databases: files, several of them, and perturbed copies."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import pytest
from rlvr_plugin_sql_exec.build import built_image
from rlvr_plugin_sql_exec.failures import BadTruthError
from rlvr_plugin_sql_exec.perturb import as_image, perturbed
from rlvr_plugin_sql_exec.sandbox import Source

from rlvr_core.api import FailureCategory

LIMA = "SELECT name FROM customers WHERE city = 'Lima'"


@pytest.fixture
def folder(tmp_path, shop):
    image = built_image(shop["schema"], shop["data"])
    (tmp_path / "databases").mkdir()
    (tmp_path / "databases" / "shop ?#.db").write_bytes(image)
    (tmp_path / "secret.db").write_bytes(image)
    (tmp_path / "databases" / "link.db").symlink_to(tmp_path / "secret.db")
    (tmp_path / "databases" / "deeper").mkdir()
    return tmp_path / "databases"


def test_a_file_below_the_folder_is_read(judge, folder):
    truth = {"query": LIMA, "database": "shop ?#.db"}
    assert judge(f"{LIMA};", truth, folder=folder).score == 1
    assert judge(f"{LIMA} LIMIT 0", truth, folder=folder).score == 0


@pytest.mark.parametrize("name", ["none.db", "link.db", "deeper"])
def test_a_file_that_is_not_below_the_folder_is_not_read(judge, folder, name):
    verdict = judge(LIMA, {"query": LIMA, "database": name}, folder=folder)
    assert verdict.failure is FailureCategory.BAD_GROUND_TRUTH


def test_a_row_that_names_a_file_needs_the_folder(judge):
    verdict = judge(LIMA, {"query": LIMA, "database": "shop.db"})
    assert "`folder` is missing" in verdict.diagnostics["message"]


def test_an_answer_must_be_right_on_every_database(judge, folder, shop):
    other = {"customers": [[1, "Ada", "Oslo", 1]], "orders": []}
    both = {"schema": shop["schema"], "data": [shop["data"], other]}
    by_name = "SELECT name FROM customers WHERE name IN ('Ada', 'Cy')"
    assert judge(by_name, {"query": LIMA, **shop}).score == 1
    assert judge(by_name, {"query": LIMA, **both}).score == 0
    assert judge(LIMA, {"query": LIMA, **both}).score == 1
    with closing(sqlite3.connect(folder / "two.db")) as connection:
        connection.executescript(shop["schema"])
        connection.execute("INSERT INTO customers VALUES (1, 'Ada', 'Oslo', 1)")
        connection.commit()
    files = {"query": LIMA, "database": ["shop ?#.db", "two.db"]}
    assert judge(by_name, files, folder=folder).score == 0
    assert judge(LIMA, files, folder=folder).score == 1


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_file_is_perturbed_in_memory_only(judge, tmp_path, shop, mode):
    path = tmp_path / "shop.db"
    path.write_bytes(built_image(shop["schema"], shop["data"]))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    before = path.read_bytes()
    truth = {"query": "SELECT count(*) FROM customers", "database": "shop.db"}
    for perturb, score in ((0, 1), (2, 0)):
        config = {"folder": tmp_path, "perturb": perturb}
        assert judge("SELECT max(5, id) FROM customers LIMIT 1", truth, **config).score == score
        assert judge("SELECT count(id) FROM customers", truth, **config).score == 1
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["shop.db"]


def test_a_file_too_large_to_copy_cannot_be_perturbed(tmp_path):
    path = tmp_path / "large.db"
    path.write_bytes(bytes(4_000_001))
    with pytest.raises(BadTruthError, match="up to"):
        as_image(Source(path=path))


SCHEMA = '''
CREATE TABLE country (code TEXT PRIMARY KEY, name TEXT UNIQUE, size REAL CHECK (size > 0));
CREATE TABLE city (
  id INTEGER PRIMARY KEY, country TEXT REFERENCES country (code), name TEXT, low INT, high INT,
  CHECK (low <= high)
);
CREATE TABLE trip (
  city INTEGER NOT NULL REFERENCES city, day TEXT, price REAL, twice AS (price * 2),
  PRIMARY KEY (city, day)
);
CREATE TABLE tag (word TEXT PRIMARY KEY, note TEXT) WITHOUT ROWID;
CREATE TABLE "odd ""name""" ("rowid" INT, "a b" TEXT);
CREATE VIEW dear AS SELECT * FROM trip WHERE price > 5;
CREATE TRIGGER log AFTER UPDATE ON city BEGIN DELETE FROM tag; END;
'''


@pytest.fixture(scope="module")
def world():
    chance = random.Random(0)
    tables = {
        "country": [(f"c{n}", f"country {n}", chance.random() + 1) for n in range(20)],
        "city": [
            (n, f"c{n % 20}", chance.choice("abc"), low := chance.randrange(9), low + n % 5)
            for n in range(60)
        ],
        "trip": [(n % 60, f"2024-01-{n // 60 + 10}", float(n)) for n in range(200)],
        "tag": [("x", "y"), ("z", "w")],
        'odd "name"': [(n, f"t{n}") for n in range(9)],
    }
    tables['odd "name"'].append((None, None))
    return built_image(SCHEMA, tables)


def opened(image):
    connection = sqlite3.connect(":memory:")
    connection.deserialize(image)
    return closing(connection)


def rows_of(image, table):
    with opened(image) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


def test_equal_keys_give_equal_copies_and_others_differ(world):
    assert perturbed(world, "0/1") == perturbed(world, "0/1")
    assert perturbed(world, "0/1") != perturbed(world, "0/2") != perturbed(world, "1/2")


@pytest.mark.parametrize("key", ["0/0", "0/1", "7/3"])
def test_a_copy_keeps_what_the_schema_declares(world, key):
    copy = perturbed(world, key)
    with opened(copy) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    for table, bound in (("country", 2), ("city", 2)):
        before, after = rows_of(world, table), rows_of(copy, table)
        kept = {row[0]: row for row in before}
        assert 0 < len(after) < len(before)
        assert all(kept[row[0]][:bound] == row[:bound] for row in after)
        # What is said of a row was said of one, as a whole.
        assert {row[bound:] for row in after} <= {row[bound:] for row in before}
    said = {row[0]: row[2:] for row in rows_of(world, "city")}
    assert any(said[row[0]] != row[2:] for row in rows_of(copy, "city"))
    assert rows_of(copy, "tag") == rows_of(world, "tag")
    assert all(row[3] == 2 * row[2] for row in rows_of(copy, "trip"))


def test_nobody_can_say_a_constant_that_is_right_on_copies(judge, shop):
    for right in (
        "SELECT count(*) FROM customers",
        "SELECT max(age) FROM customers",
        "SELECT name FROM customers WHERE id = 2",
        "SELECT sum(amount) FROM orders",
    ):
        truth = {"query": right, **shop}
        connection = sqlite3.connect(":memory:")
        connection.deserialize(built_image(shop["schema"], shop["data"]))
        (value,) = connection.execute(right).fetchone()
        constant = f"SELECT {value!r} WHERE (SELECT count(*) FROM customers) >= 0"
        assert judge(constant, truth).score == 1
        for seed in range(5):
            assert judge(constant, truth, perturb=1, seed=seed).score == 0
            assert judge(right, truth, perturb=1, seed=seed).score == 1


def test_a_right_query_that_says_the_same_on_every_copy_abstains(ask):
    verdict = ask("SELECT 1", "SELECT count(*) >= 0 FROM customers", perturb=2)
    assert verdict.failure is FailureCategory.BAD_GROUND_TRUTH
    assert "every perturbed copy" in verdict.diagnostics["message"]


def test_a_row_that_would_refer_to_nothing_and_has_no_rowid_cannot_be_perturbed():
    script = """
    CREATE TABLE a (id INTEGER PRIMARY KEY, x);
    CREATE TABLE b (a INTEGER PRIMARY KEY REFERENCES a) WITHOUT ROWID;
    """
    image = built_image(script, {"a": [(n, n) for n in range(8)], "b": [(n,) for n in range(8)]})
    with pytest.raises(BadTruthError, match="no rowid"):
        perturbed(image, "0/0")
