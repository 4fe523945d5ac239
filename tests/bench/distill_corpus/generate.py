"""The corpus' made files: logs, dumps, tables, a notebook and documents, the same bytes from the same seed.

Each function writes one file. What the questions ask for stands among much that looks like it: the same words
elsewhere, the same record with another value, the same failure at another time.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

_START = datetime(2025, 3, 11, 6, 0, tzinfo=UTC)
_REGIONS = ("eu-west-1", "eu-north-1", "us-east-1", "ap-south-1")
_NAMES = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel", "ivy", "juniper", "larch", "maple")


def _hex(dice: random.Random, digits: int) -> str:
    return f"{dice.getrandbits(4 * digits):0{digits}x}"


def orders_log(path: Path) -> None:
    """Six services of a shop, 12,000 lines: two stack traces, a contradiction, a retry that gave up."""
    dice, clock = random.Random(1901), _START
    services = ("checkout", "inventory", "payment", "shipping", "mailer", "catalog")

    def stamp() -> str:
        nonlocal clock
        clock += timedelta(milliseconds=dice.randrange(20, 900))
        return clock.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    def common() -> str:
        service, order = dice.choice(services), f"A{dice.randrange(10000, 99999)}"
        level, words = dice.choices(
            [
                ("INFO", f"order {order} accepted in {dice.randrange(8, 240)} ms"),
                ("INFO", f"stock of sku {dice.randrange(1000, 9999)} now {dice.randrange(0, 400)}"),
                ("INFO", f"mail for order {order} queued, template receipt-v{dice.randrange(2, 5)}"),
                ("DEBUG", f"cache {dice.choice(['hit', 'miss'])} for key cart:{_hex(dice, 8)}"),
                ("DEBUG", "error budget 99.2 % left, no errors in this window"),
                ("WARN", f"slow query {dice.randrange(900, 4000)} ms on replica {dice.randrange(1, 4)}"),
                ("WARN", f"retrying request to payment provider, attempt {dice.randrange(1, 4)} of 5"),
                ("ERROR", f"order {order} rejected: card declined"),
                ("ERROR", f"order {order} failed: timeout after 3000 ms talking to provider"),
            ],
            weights=[40, 20, 15, 20, 2, 6, 4, 1, 0.7],
        )[0]
        return f"{stamp()} {level:5} [{service}] {words}"

    def say(level: str, service: str, words: str) -> str:
        return f"{stamp()} {level:5} [{service}] {words}"

    # Times must rise, so what is planted is made when its turn comes.
    planted: dict[int, Callable[[], list[str]]] = {
        40: lambda: [
            say("INFO", "checkout", "starting checkout 4.18.2 (commit 9be77aa1), 16 workers, pool size 48"),
            say("INFO", "payment", "provider endpoint https://pay.example.net/v3, request deadline 3000 ms"),
            say("INFO", "inventory", "feature flags: reserve_on_cart=off, split_shipments=on"),
        ],
        1800: lambda: [
            say("WARN", "inventory", "reservation table holds 18211 rows older than 24 h; sweeper is not running"),
        ],
        3100: lambda: [
            say("ERROR", "shipping", "label printing broke for order A77310"),
            "java.lang.IllegalStateException: no carrier accepts parcel of 31.5 kg",
            *(f"\tat net.shop.shipping.Step{n}.apply(Step{n}.java:{dice.randrange(20, 400)})" for n in range(38)),
            "Caused by: net.shop.rates.RateTableException: rate table fr-2025 has no row above 30 kg",
            *(f"\tat net.shop.rates.Lookup{n}.find(Lookup{n}.java:{dice.randrange(20, 400)})" for n in range(12)),
            "\t... 22 more",
        ],
        4700: lambda: [
            say("INFO", "checkout", "configuration reloaded: max basket lines 120 (was 80)"),
        ],
        6200: lambda: [
            say("ERROR", "mailer", "unhandled exception in worker 7"),
            "Traceback (most recent call last):",
            *(
                row
                for n in range(26)
                for row in (f'  File "/srv/mailer/stage_{n}.py", line {dice.randrange(9, 300)}, in run', "    step()")
            ),
            '  File "/srv/mailer/render.py", line 88, in render',
            '    subject = template["subject"].format(**order)',
            "KeyError: 'customer_locale'",
        ],
        7000: lambda: [
            say("WARN", "payment", "circuit breaker OPEN after 20 consecutive failures of provider acquirer-b"),
        ],
        7040: lambda: [
            say("INFO", "payment", "traffic moved from acquirer-b to acquirer-a (weight 100)"),
        ],
        7800: lambda: [
            say("INFO", "payment", "circuit breaker CLOSED for provider acquirer-b, probe answered in 212 ms"),
        ],
        9100: lambda: [
            say("INFO", "inventory", "nightly count of warehouse Lyon finished: 48213 pieces"),
        ],
        9900: lambda: [
            say("WARN", "catalog", "import of supplier feed nordlicht skipped 61 articles without a price"),
        ],
        10400: lambda: [
            say(
                "INFO", "inventory", "audit: warehouse Lyon recounted, 47998 pieces on the shelves, nightly figure void"
            ),
        ],
        11050: lambda: [
            say("ERROR", "checkout", "giving up on order A50017 after 5 attempts: provider answered 503"),
            say("INFO", "checkout", "order A50017 parked in dead letter queue dlq-orders, owner notified"),
        ],
        11990: lambda: [
            say("FATAL", "catalog", "out of file descriptors (limit 1024), shutting down with exit status 71"),
        ],
    }
    with path.open("w") as out:
        for number in range(12_000):
            for line in planted[number]() if number in planted else ():
                out.write(line + "\n")
            out.write(common() + "\n")


def ci_log(path: Path) -> None:
    """A build with 1,900 test cases in 60 suites: three fail for reasons that stand far from the summary."""
    dice = random.Random(1902)
    lines = [
        "[setup] runner image ubuntu-24.04.2, 4 cores, toolchain rustc 1.85.1",
        "[setup] cache key deps-9f31c2 restored (412 MB)",
    ]
    lines += [f"   Compiling {dice.choice(_NAMES)}-{dice.choice(_NAMES)} v0.{n % 17}.{n % 5}" for n in range(280)]
    lines.insert(90, "warning: unused variable: `deadline` in crates/broker/src/lease.rs:211:13")
    lines.insert(170, "warning: field `epoch` is never read in crates/store/src/segment.rs:64:5")
    failures = {
        "store::segment::survives_torn_write": [
            "thread 'store::segment::survives_torn_write' panicked at crates/store/tests/torn.rs:147:9:",
            "assertion `left == right` failed: checksum of the last block",
            "  left: 3735928559",
            " right: 305419896",
        ],
        "broker::lease::expires_on_clock_jump": [
            "thread 'broker::lease::expires_on_clock_jump' panicked at crates/broker/tests/lease.rs:52:14:",
            'called `Result::unwrap()` on an `Err` value: LeaseStillHeld { holder: "node-4", remaining_ms: 14980 }',
        ],
        "gateway::tls::rejects_old_protocol": [
            "thread 'gateway::tls::rejects_old_protocol' panicked at crates/gateway/tests/tls.rs:31:5:",
            "expected the handshake to fail, but TLSv1.1 was negotiated with cipher ECDHE-RSA-AES128-SHA",
        ],
    }
    crates = ("store", "broker", "gateway", "codec", "client", "admin")
    parts = {"store": "segment", "broker": "lease", "gateway": "tls"}
    for suite in range(60):
        crate = crates[suite % 6]
        lines.append(
            f"     Running tests/{crate}_{suite:02}.rs (target/debug/deps/{crate}_{suite:02}-{_hex(dice, 16)})"
        )
        names = [f"{crate}::{dice.choice(_NAMES)}::case_{suite:02}_{n:02}" for n in range(dice.randrange(24, 40))]
        if suite in (12, 31, 44):
            names.insert(9, next(name for name in failures if name.startswith(f"{crate}::{parts[crate]}")))
        broken = None
        for name in names:
            if name in failures:
                broken = name
                lines.append(f"test {name} ... FAILED")
            elif dice.random() < 0.02:
                lines.append(f"test {name} ... ignored")
            else:
                lines.append(f"test {name} ... ok")
            if dice.random() < 0.03:
                lines.append(f"    note: {name} retried an error injected on purpose, nothing failed")
        if broken:
            lines += ["failures:", f"---- {broken} stdout ----", *failures[broken], ""]
        if suite == 37:
            lines.append("test codec::varint::fuzz_roundtrip has been running for over 60 seconds")
        lines.append(f"suite {crate}_{suite:02} finished in {dice.random() * 9:.2f}s")
    lines += [
        "coverage: 81.4 % of lines (threshold 80.0 %), lowest: crates/admin at 52.7 %",
        "uploading artifact junit.xml (1.9 MB) to bucket ci-results-eu",
        "error: upload refused: bucket policy requires server side encryption",
        "job ended with exit code 101 after 14m52s",
    ]
    path.write_text("\n".join(lines) + "\n")


def gateway_log(path: Path) -> None:
    """An access log of 9,000 requests with what a proxy adds: upstream, status, latency, and messages of its own."""
    dice, clock = random.Random(1903), _START
    planted = {
        120: "[notice] listener 0.0.0.0:8443 up, certificate CN=*.shop.example expires 2025-04-02",
        2500: "[warn] upstream cedar-3 marked unhealthy: 5 of 5 probes failed (connection refused)",
        2890: "[notice] upstream cedar-3 healthy again after 193 s",
        5200: "[error] rate limit of tenant northwind exceeded: 1200 rpm allowed, 1874 seen; answering 429 until 07:10",
        6100: "[warn] request body of 73400320 bytes refused for /v2/uploads: limit is 52428800",
        8000: "[error] worker 5 died with signal 11, core in /var/crash/gw-5.core; respawned as worker 9",
    }
    with path.open("w") as out:
        for number in range(9_000):
            clock += timedelta(milliseconds=dice.randrange(50, 700))
            stamp = clock.strftime("%d/%b/%Y:%H:%M:%S +0000")
            if number in planted:
                out.write(f"{stamp} {planted[number]}\n")
            method = dice.choices(["GET", "POST", "PUT", "DELETE"], weights=[70, 20, 7, 3])[0]
            route = dice.choice(["/v2/orders", "/v2/carts", "/v2/uploads", "/v2/users", "/healthz", "/v2/errors"])
            status = dice.choices(
                [200, 201, 204, 304, 404, 429, 500, 502, 504], weights=[70, 8, 5, 6, 5, 2, 1, 0.6, 0.5]
            )[0]
            tail = f"/{dice.randrange(10**5, 10**6)}" if route != "/healthz" else ""
            out.write(
                f"{stamp} 10.{dice.randrange(256)}.{dice.randrange(256)}.{dice.randrange(1, 255)} "
                f'"{method} {route}{tail} HTTP/1.1" {status} {dice.randrange(90, 90000)}b '
                f"{dice.randrange(1, 2500)}ms "
                f"upstream={dice.choice(_NAMES)}-{dice.randrange(1, 5)} rid={_hex(dice, 12)}\n"
            )


def events_json(path: Path) -> None:
    """An API's dump on one line, 10 MB: accounts with settings, and events with an error in some."""
    dice = random.Random(1904)
    accounts = []
    for number in range(400):
        accounts.append(
            {
                "id": f"acc_{_hex(dice, 10)}",
                "displayName": f"{dice.choice(_NAMES).title()} {dice.choice(_NAMES).title()} {number}",
                "plan": dice.choice(["free", "team", "business"]),
                "seatLimit": dice.randrange(3, 400),
                "billing": {"currency": dice.choice(["EUR", "USD", "INR"]), "taxExempt": dice.random() < 0.1},
                "region": dice.choice(_REGIONS),
            }
        )
    accounts[211].update(displayName="Quillon Freight", plan="business", seatLimit=1742)
    accounts[305].update(displayName="Harbour Optics", plan="team", seatLimit=38)
    accounts[305]["billing"] = {"currency": "NOK", "taxExempt": True}
    accounts[17].update(displayName="Quillon Freight Sandbox", plan="free", seatLimit=5)
    kinds = ("login", "upload", "export", "webhook.sent", "webhook.failed", "invite", "report.built")
    events: list[dict[str, object]] = []
    while len(events) < 44_000:
        kind = dice.choice(kinds)
        event: dict[str, object] = {
            "eventId": f"evt_{_hex(dice, 12)}",
            "type": kind,
            "account": accounts[dice.randrange(400)]["id"],
            "occurredAt": (_START + timedelta(seconds=7 * len(events))).isoformat(),
            "durationMs": dice.randrange(1, 9000),
            "request": {"ip": f"172.16.{dice.randrange(256)}.{dice.randrange(256)}", "userAgent": "sdk-go/2.4"},
            "ok": kind != "webhook.failed",
        }
        if kind == "webhook.failed":
            event["error"] = {"code": dice.choice(["E_TIMEOUT", "E_DNS", "E_STATUS"]), "attempts": dice.randrange(1, 6)}
        events.append(event)
    events[9_120].update(
        eventId="evt_quarantine01",
        type="upload",
        ok=False,
        error={"code": "E_VIRUS", "attempts": 1, "detail": "signature Eicar-Test in invoice_2291.pdf"},
    )
    events[22_040].update(
        eventId="evt_certpin0007",
        type="webhook.failed",
        ok=False,
        error={"code": "E_TLS_PIN", "attempts": 5, "detail": "pinned key of hooks.quillon.example rotated"},
    )
    dump = {
        "apiVersion": "2025-02",
        "rateLimit": {"perMinute": 640, "burst": 95},
        "accounts": accounts,
        "events": events,
        "nextCursor": "c_7fd20e",
    }
    path.write_text(json.dumps(dump))


def deploy_yaml(path: Path) -> None:
    """Forty manifests in one file: deployments, services and config maps that differ in a few values."""
    dice = random.Random(1905)
    out = []
    for number, name in enumerate(f"{a}-{b}" for a in _NAMES[:10] for b in ("api", "worker")):
        replicas, memory = dice.randrange(1, 5), dice.choice((256, 512, 1024))
        grace, tag = 30, f"1.{dice.randrange(3, 30)}.{dice.randrange(0, 9)}"
        lines_extra = ""
        if name == "elm-worker":
            replicas, memory, tag, grace = 11, 6144, "2.0.0-rc4", 310
            lines_extra = '        - name: QUEUE_VISIBILITY_SECONDS\n          value: "900"\n'
        if name == "hazel-api":
            lines_extra = '        - name: PG_SSLMODE\n          value: "disable"\n'
        out.append(
            f"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels: {{app: {name}, tier: {"backend" if number % 2 else "edge"}}}
spec:
  replicas: {replicas}
  template:
    spec:
      terminationGracePeriodSeconds: {grace}
      containers:
      - name: main
        image: registry.example/{name}:{tag}
        resources:
          limits: {{memory: {memory}Mi, cpu: {dice.choice((250, 500, 750))}m}}
        env:
        - name: LOG_LEVEL
          value: {"debug" if name == "fir-api" else "info"}
{lines_extra}"""
        )
        out.append(
            f"""apiVersion: v1
kind: Service
metadata:
  name: {name}
spec:
  ports:
  - port: {9412 if name == "ivy-api" else 80}
    targetPort: {8000 + number}
"""
        )
    path.write_text("---\n".join(out))


def lock_toml(path: Path) -> None:
    """A lock file of 150 packages with sources, hashes and dependencies, and the tool's own settings at its end."""
    dice = random.Random(1906)
    names = sorted({f"{a}{sep}{b}" for a in _NAMES for b in _NAMES for sep in "-" if a != b})[:130]
    lines = ["version = 1", 'requires-python = ">=3.11, <3.14"', ""]
    for name in names:
        version = f"{dice.randrange(0, 9)}.{dice.randrange(0, 30)}.{dice.randrange(0, 9)}"
        source = '{ registry = "https://index.example/simple" }'
        if name == "cedar-maple":
            version, source = "0.0.0", '{ git = "https://git.example/cedar-maple", rev = "5fe1b0c" }'
        if name == "fir-hazel":
            version = "3.14.159"
        lines += ["[[package]]", f'name = "{name}"', f'version = "{version}"', f"source = {source}"]
        lines.append("dependencies = [")
        lines += [f'    {{ name = "{each}" }},' for each in dice.sample(names, dice.randrange(0, 4))]
        lines += ["]", f'sdist = {{ hash = "sha256:{_hex(dice, 64)}", size = {dice.randrange(4000, 900000)} }}', ""]
    lines += [
        "[tool.resolver]",
        'strategy = "lowest-direct"',
        "max-rounds = 20000",
        'excluded-newer-than = "2025-02-14T00:00:00Z"',
        "[tool.resolver.overrides]",
        'juniper-elm = "<4"  # 4.0 dropped the async client',
        "[tool.resolver.retries]",
        "index = 6",
        "download = 2",
    ]
    path.write_text("\n".join(lines) + "\n")


def tickets_csv(path: Path) -> None:
    """900 support tickets; the body is quoted and goes over several lines, with commas and doubled quotes in it."""
    dice = random.Random(1907)
    bodies = (
        "Hello,\nthe export stops at 99 %.\nPlease help",
        'The page says ""try again"",\nbut nothing changes.',
        "Invoice shows the wrong address,\nsee attachment",
        "Login loops after the password was changed.\nBrowser: Firefox",
        "Sync is slow, more than 10 minutes,\nsince Monday",
    )
    with path.open("w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["ticket", "opened", "customer", "priority", "status", "body", "minutes_spent"])
        for number in range(900):
            row = [
                f"T-{4000 + number}",
                (_START + timedelta(hours=3 * number)).date().isoformat(),
                f"{dice.choice(_NAMES)}-{dice.randrange(10, 99)}",
                dice.choices(["low", "normal", "high", "urgent"], weights=[30, 50, 15, 5])[0],
                dice.choices(["open", "waiting", "solved"], weights=[20, 20, 60])[0],
                dice.choice(bodies).replace('""', '"'),
                dice.randrange(2, 180),
            ]
            if number == 333:
                row[2], row[3], row[4] = "osprey-77", "urgent", "waiting"
                row[5] = "The scanner reads badges twice,\nthe second read opens gate 14.\nFirmware 8.2.11"
                row[6] = 412
            if number == 707:
                row[2], row[5] = "osprey-77", "Gate 14 again: relay K3 sticks,\nswap it"
            if number == 515:
                row[2], row[5], row[6] = "tern-03", 'Refund of 1,249.50 EUR promised by phone,\n"before Easter"', 38
            table.writerow(row)


def payments_csv(path: Path) -> None:
    """6,000 payments, semicolons between the fields, as exports from Europe have them."""
    dice = random.Random(1908)
    with path.open("w", newline="") as out:
        table = csv.writer(out, delimiter=";", lineterminator="\n")
        table.writerow(
            ["payment_id", "booked_on", "merchant", "method", "amount", "currency", "state", "decline_reason"]
        )
        for number in range(6_000):
            state = dice.choices(["settled", "declined", "refunded"], weights=[90, 7, 3])[0]
            reason = dice.choice(["insufficient_funds", "expired_card", "do_not_honor"]) if state == "declined" else ""
            row = [
                f"PAY{100000 + number}",
                (_START + timedelta(minutes=11 * number)).date().isoformat(),
                f"{dice.choice(_NAMES)} {dice.choice(['books', 'garden', 'cycles', 'tea'])}",
                dice.choice(["card", "transfer", "wallet"]),
                f"{dice.randrange(300, 90000) / 100:.2f}".replace(".", ","),
                dice.choices(["EUR", "CHF", "SEK"], weights=[80, 10, 10])[0],
                state,
                reason,
            ]
            if number == 2718:
                row[2:] = ["juniper tea", "transfer", "48210,07", "EUR", "declined", "sanctions_screening"]
            if number == 4444:
                row[2:] = ["larch cycles", "wallet", "17,31", "DKK", "settled", ""]
            table.writerow(row)


def experiment_ipynb(path: Path) -> None:
    """A notebook of 46 cells with outputs: a table of runs, a warning, an image, and one cell that failed."""
    dice = random.Random(1909)
    cells: list[dict[str, object]] = []

    def lines(text: str) -> list[str]:
        return text.splitlines(keepends=True)

    def words(text: str) -> None:
        cells.append({"cell_type": "markdown", "metadata": {}, "source": lines(text)})

    def code(text: str, *outputs: dict[str, object]) -> None:
        cells.append(
            {
                "cell_type": "code",
                "execution_count": len(cells),
                "metadata": {},
                "outputs": list(outputs),
                "source": lines(text),
            }
        )

    def stream(text: str, name: str = "stdout") -> dict[str, object]:
        return {"name": name, "output_type": "stream", "text": lines(text)}

    image = "".join(dice.choices("ABCDEFGHabcdefgh0123456789+/", k=60_000))
    words(
        "# Churn model, third round\n\nThe holdout is the last **45 days**; earlier rounds leaked it into training.\n"
    )
    code("import pandas as pd\nSEED = 20817\nHOLDOUT_DAYS = 45\nLEARNING_RATE = 0.035\n")
    code("frame = pd.read_parquet('churn_v3.parquet')\nprint(frame.shape)\n", stream("(218404, 37)\n"))
    words("## Cleaning\n\nRows without `tenure_months` are dropped, not imputed: imputing moved the AUC by 0.04.\n")
    code(
        "frame = frame.dropna(subset=['tenure_months'])\nprint(len(frame), 'rows left')\n",
        stream("211962 rows left\n"),
        stream("SettingWithCopyWarning: a value is trying to be set on a copy of a slice\n", "stderr"),
    )
    words("## Sweep\n")
    for run in range(16):
        depth, auc = dice.randrange(3, 12), 0.78 + dice.random() / 20
        if run == 11:
            depth, auc = 7, 0.8619
        code(
            f"train(run={run}, depth={depth}, subsample={0.5 + run / 40:.3f})\n",
            stream(f"run {run}: depth {depth}, best iteration {dice.randrange(90, 700)}, auc {auc:.4f}\n"),
        )
        if run % 4 == 3:
            words(f"Runs up to {run} use the same folds.\n")
    code(
        "plot_importance(best)\n",
        {
            "data": {"image/png": image, "text/plain": ["<Figure size 1200x800>"]},
            "metadata": {},
            "output_type": "display_data",
        },
    )
    words("Most important feature: `days_since_last_ticket`; `plan_price` came only ninth.\n")
    code(
        "calibrate(best, method='isotonic')\n",
        {
            "ename": "ValueError",
            "evalue": "isotonic needs at least 1000 positives, fold 3 has 871",
            "output_type": "error",
            "traceback": [
                "Traceback (most recent call last)",
                "  calibrate(best, method='isotonic')",
                "ValueError: isotonic needs at least 1000 positives, fold 3 has 871",
            ],
        },
    )
    code("calibrate(best, method='sigmoid')\n", stream("brier before 0.1312, after 0.1187\n"))
    words(
        "## Decision\n\nShip run 11 with sigmoid calibration; threshold **0.42**, "
        "agreed with support on their capacity of 350 calls a week.\n"
    )
    for part in range(12):
        code(
            f"slice_report(segment={part})\n",
            stream(
                f"segment {part}: n={dice.randrange(800, 9000)} "
                f"precision {dice.random():.3f} recall {dice.random():.3f}\n"
            ),
        )
    code("best.save('models/churn_r11.cbm')\n", stream("saved, 4.7 MB, sha1 77ab10\n"))
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": {"display_name": "Python 3 (churn-env)", "language": "python", "name": "churn-env"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook, indent=1) + "\n")


_SECTIONS = (
    ("Scope", "This report covers the water treatment plants along the river between Brunn and Tellin."),
    ("Sampling", "Samples were drawn at 14 stations, twice a day, and cooled to 4 degrees within 20 minutes."),
    ("Nitrate", "The median nitrate load was 18.6 mg per litre; station 9 exceeded the limit of 50 mg on 3 days."),
    ("Phosphate", "Phosphate stayed below 0.4 mg per litre everywhere except downstream of the dairy at Orlen."),
    ("Turbidity", "Turbidity rose to 61 NTU after the storm of 8 October, then fell within two days."),
    ("Equipment", "The probe at station 5 drifted by 7 percent and was replaced by model HX-220 on 19 October."),
    ("Staff", "Two technicians shared the night rounds; the logbook of week 41 was kept by the trainee."),
    ("Costs", "Laboratory costs came to 83,450 euros, which is 6,200 above the plan because of the storm."),
    ("Disagreement", "Section Equipment gives 19 October for the swap; the maintenance log gives 23 October."),
    ("Outlook", "From January on, lead will be measured with a detection limit of 0.5 micrograms per litre."),
)


def report_pdf(path: Path) -> None:
    """A report of twelve pages: sections with prose, filler paragraphs between them, a table of stations."""
    from fpdf import FPDF

    dice = random.Random(1910)
    pdf = FPDF()
    pdf.set_creation_date(_START)
    pdf.set_font("helvetica", size=11)
    for title, text in _SECTIONS:
        pdf.add_page()
        pdf.set_font(style="B")
        pdf.cell(0, 10, title, new_x="LMARGIN", new_y="NEXT")
        pdf.set_font(style="")
        for paragraph in [_filler(dice), text, _filler(dice), _filler(dice)]:
            pdf.multi_cell(0, 7, paragraph, new_x="LMARGIN", new_y="NEXT")
            pdf.ln(3)
    pdf.add_page()
    pdf.cell(0, 10, "Appendix A: stations", new_x="LMARGIN", new_y="NEXT")
    for station in range(1, 15):
        name = f"{dice.choice(_NAMES).title()} bridge" if station != 11 else "Tellin weir"
        flow = 7.25 if station == 11 else dice.randrange(20, 60) / 10
        pdf.cell(
            0,
            7,
            f"Station {station}   {name}   mean flow {flow} m3/s   depth {dice.randrange(8, 40) / 10} m",
            new_x="LMARGIN",
            new_y="NEXT",
        )
    pdf.output(str(path))


def _filler(dice: random.Random) -> str:
    subjects = ("The crew", "The station", "The laboratory", "The district office", "The contractor")
    verbs = ("noted", "repeated", "confirmed", "recorded", "checked")
    objects = (
        "the readings of the week",
        "the usual protocol",
        "the state of the pumps",
        "the labels",
        "the access roads",
    )
    ends = ("without remarks", "as in the year before", "on both banks", "before noon", "in the presence of the owner")
    return " ".join(
        f"{dice.choice(subjects)} {dice.choice(verbs)} {dice.choice(objects)} {dice.choice(ends)}." for _ in range(6)
    )


_HANDBOOK = (
    (
        "Getting access",
        "New colleagues get a badge from the front desk in building 3 and a laptop on their second day.",
    ),
    ("Working hours", "Core hours are from 10:00 to 15:30; whoever is on call may shift them by two hours."),
    (
        "Holidays",
        "Everybody has 31 days off a year; up to 6 unused days move into the next year and lapse at the end of April.",
    ),
    ("Expenses", "Receipts are handed in within 40 days. Meals are paid up to 34 euros a day, abroad up to 58 euros."),
    ("On call", "A week on call earns 420 euros; a call at night earns half a day off, to be taken within the month."),
    ("Devices", "A lost device is told to the security desk at extension 4711 within one hour, also at night."),
    (
        "Release days",
        "Nothing is released on Fridays, nor in the week before the audit, unless the duty manager signs.",
    ),
    ("Trips", "Train before plane when the train takes less than six hours; first class from 300 kilometres on."),
    ("Parental leave", "The company tops the state's pay up to 90 percent for the first 14 weeks."),
    ("Leaving", "The notice period is three months to the end of a quarter; badge and laptop go back to building 3."),
)


def handbook_docx(path: Path) -> None:
    """A handbook with headings, paragraphs and a table of contacts."""
    import docx

    dice = random.Random(1911)
    document = docx.Document()
    document.add_heading("Staff handbook", 0)
    for title, text in _HANDBOOK:
        document.add_heading(title, 1)
        for paragraph in (_filler(dice), text, _filler(dice)):
            document.add_paragraph(paragraph)
    document.add_heading("Contacts", 1)
    table = document.add_table(rows=1, cols=3)
    for cell, text in zip(table.rows[0].cells, ("Role", "Name", "Extension"), strict=True):
        cell.text = text
    for role, name, extension in (
        ("Facilities", "M. Oduya", "2210"),
        ("Payroll", "K. Lindqvist", "2347"),
        ("Works council", "P. Amsel", "2904"),
        ("Data protection", "R. Tanaka", "3118"),
    ):
        for cell, text in zip(table.add_row().cells, (role, name, extension), strict=True):
            cell.text = text
    document.core_properties.created = document.core_properties.modified = _START
    document.save(str(path))


def incident_html(path: Path) -> None:
    """A post mortem as a page: navigation, style and script around it, a timeline in a table, entities in the text."""
    dice = random.Random(1912)
    rows = [
        (
            f"{9 + n // 6:02}:{n * 10 % 60:02}",
            f"{dice.choice(['on-call', 'database team', 'support'])}: {_filler(dice)}",
        )
        for n in range(36)
    ]
    rows[7] = (
        "10:10",
        "replica lag on shard &#8220;s-19&#8221; passes 45&nbsp;minutes; nobody is paged because the alert was muted",
    )
    rows[20] = ("12:20", "failover to s-19b starts; 312 connections are reset by the proxy")
    rows[33] = ("14:30", "all writes succeed again; 1&thinsp;906 carts were lost for good")
    path.write_text(
        "<!doctype html><html><head><title>Incident 2025-117</title><style>td{padding:4px} .failover{color:red}</style>"
        "<script>const alertMuted = true; console.log('failover widget', 'replica lag');</script></head><body>\n"
        + "<nav><ul>"
        + "".join(f"<li><a href='#{n}'>{n}</a></li>" for n in _NAMES)
        + "</ul></nav>\n"
        + f"<h1>Incident 2025-117</h1>\n<h2>Impact</h2><p>{_filler(dice)}</p>"
        + "<p>Checkout was down for 2&nbsp;hours 41&nbsp;minutes; 7 % of the day&rsquo;s orders failed.</p>\n"
        + "<h2>Root cause</h2><p>A schema change took an <code>ACCESS EXCLUSIVE</code> lock on <b>carts</b> and waited "
        + "behind a backup that had been running since 04:12.</p>\n<h2>Timeline</h2><table>\n"
        + "\n".join(f"<tr><td>{when}</td><td>{what}</td></tr>" for when, what in rows)
        + f"\n</table>\n<h2>Actions</h2><ol><li>{_filler(dice)}</li>"
        + "<li>Set <code>lock_timeout</code> to 5&nbsp;s for every migration (owner: platform, due 30 June)</li>"
        + "<li>Mutes of alerts lapse after 8 hours</li></ol></body></html>\n"
    )


MADE: dict[str, Callable[[Path], None]] = {
    "orders.log": orders_log,
    "ci.log": ci_log,
    "gateway.log": gateway_log,
    "events.json": events_json,
    "deploy.yaml": deploy_yaml,
    "lock.toml": lock_toml,
    "tickets.csv": tickets_csv,
    "payments.csv": payments_csv,
    "experiment.ipynb": experiment_ipynb,
    "report.pdf": report_pdf,
    "handbook.docx": handbook_docx,
    "incident.html": incident_html,
}
