"""Words that a task and a memory may use for the same matter in software work.

A task says "login fails", the memory that helps says "session cookie": no stem in common. Each line holds words that
stand for one matter; a word may stand in several lines. Written from the general vocabulary of the trade, for no
particular store; a word that is related counts for a part of one that is shared (``sidecars.memory.briefing``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

_LINES = """
auth authenticate authentication authorization login logout signin signup password credential session cookie oauth jwt
user account profile member customer
permission role access acl forbidden 403 admin privilege grant
secret key credential vault token password rotate
delete deletion erase remove purge drop anonymise anonymize gdpr wipe
privacy gdpr personal pii anonymise redact mask
database db sql postgres postgresql mysql sqlite table schema
migration migrate schema column alter ddl backfill
query sql select index join orm slow
transaction commit rollback lock deadlock isolation
cache caching redis memcached invalidate stale ttl evict
queue message broker kafka rabbitmq sqs consumer producer topic job
worker job background task celery cron scheduler
cron schedule scheduler periodic nightly recurring
twice duplicate duplicated double idempotent idempotency again dedupe
retry retries backoff attempt resend again
timeout deadline expire expired slow hang stuck idle
slow slowness latency performance speed fast profile bottleneck optimize
memory oom leak heap ram garbage
cpu load busy spin hot
disk storage space volume full quota
file upload attachment download blob bucket s3 object
large big huge size limit maximum exceed 413
image picture photo thumbnail avatar resize
video stream media transcode audio
pdf document report print invoice
export csv download spreadsheet excel dump
import ingest load upload feed
csv separator delimiter semicolon comma column excel
encoding utf unicode charset latin umlaut character
locale language translation i18n l10n german french country localise localize
timezone time utc date dst clock day midnight
money price currency amount cents rounding decimal float total discount tax vat
payment pay checkout card stripe paypal refund charge billing invoice
order cart basket checkout purchase
mail email smtp newsletter notification message
notification notify alert push message
search elasticsearch lucene index reindex analyzer query
api endpoint rest route public http request response
version v1 v2 deprecate compatible breaking frozen release
graphql resolver schema dataloader n+1 query
grpc protobuf rpc proto
websocket socket live realtime push sse
webhook callback hook event
proxy nginx gateway haproxy balancer ingress
dns domain hostname resolve
certificate tls ssl https cert expire
network connection socket refused unreachable
rate throttle throttling limit limiter quota 429
monitoring metric prometheus grafana probe health dashboard alert
health probe liveness readiness check monitoring
log logging logger trace print debug
error exception crash fail failure traceback panic bug
test tests testing pytest junit jest spec suite
flaky intermittent sometimes random unstable unreliable
mock fake stub fixture double
clock time fake freeze sleep
integration e2e end-to-end docker compose local
ci pipeline build github actions jenkins gitlab runner
build compile make bundler webpack toolchain
deploy deployment release rollout ship production
release tag version changelog branch publish
branch merge rebase cherry-pick backport git
commit message git hook pre-commit
review pull request approve merge
container docker image dockerfile base
kubernetes k8s pod helm cluster node
base image debian alpine ubuntu distro
dependency package library upgrade update pin version lockfile
security vulnerability cve patch exploit
config configuration setting option environment env variable flag
flag feature toggle switch rollout experiment
reload restart signal sighup hot
start startup boot launch init
shutdown stop terminate graceful sigterm drain
frontend ui page screen browser react component button css
style css layout theme dark color colour
mobile ios android app swift kotlin
accessibility aria contrast keyboard
form field input validation validate
validate validation check schema invalid
lint linter eslint ruff flake warning rule
format formatter prettier black style indent tabs spaces
type types typed typing typescript mypy annotation
refactor cleanup restructure rename extract simplify
record dataclass struct object dict dto model
generated generate codegen template openapi swagger
client sdk wrapper library
async await promise concurrent coroutine unawaited floating
thread concurrency race lock mutex parallel
leader election failover replica primary cluster
replica replication primary lag standby
lease heartbeat lock ttl expire owner
backup restore snapshot dump recovery
tenant multitenant organisation organization customer isolation
leak expose disclose wrong
shipping delivery shipment parcel weight address
stock inventory warehouse product catalog
map location geo coordinate address
sensor device firmware bluetooth serial iot
battery power energy sleep
parser parse grammar syntax lexer token
number integer float decimal precision
sort order ranking pagination page cursor limit
pagination page cursor offset list
comment post author article blog
name naming rename convention
documentation docs readme guide describe
error message text wording copy
analytics tracking event statistics report
machine learning model training inference gpu
script shell bash command cli terminal
path directory folder file
permission chmod root sudo
plugin extension addon module hook
event listener subscribe publish bus
state store redux reducer
router route url link redirect path
redirect return confirm confirmation callback
archive old history retention keep days
duration period days retention expire
"""


@lru_cache(maxsize=1)
def _groups(stem: Callable[[str], str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _LINES.splitlines():
        group = {stem(word) for word in line.split()}
        for word in group:
            found.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in found.items()}


def related(word: str, stem: Callable[[str], str]) -> frozenset[str]:
    """The stems that may stand for the same matter as a stem.

    Args:
        word: the stem.
        stem: what made it, and makes those of the lines.
    """
    return _groups(stem).get(word, frozenset())
