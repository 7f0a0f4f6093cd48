"""SERVICE that stays fast and fresh: local views of remote data, refreshed where it matters most.

A query that joins a stream with a remote endpoint keeps what the endpoint answered in a `LocalView`. At each tick a
`Maintainer` takes what the window needs (a proposer), orders it (a ranker), refreshes as much as the `Goals` allow, and
says how good the answer is (`Quality`). docs/service.md tells how to choose; the parts:

    remote, clock, running      what a remote is; time; requests under way
    endpoint and its parts      the remote that is a SPARQL endpoint
    simulated                   the remote that replays a log of changes
    view, changes, lifetime     entries with their age; how fast they change; how long the window needs them
    proposers, rankers          WSJ, GNR; RND, LRU, WST
    best_before, learnt, bounds WBM; our own; BST and WBM*
    latency, refreshing         how long requests take; sending them
    quality, maintainer         goals, estimates and alerts; the whole of a tick
"""

from headwater.federation.lifetime import WindowKey, remaining_ticks, ticks_in
from headwater.federation.maintainer import Maintainer
from headwater.federation.policies import POLICIES, policy
from headwater.federation.quality import Alert, Goal, Goals, Quality
from headwater.federation.remote import Fetched, Page, Remote
from headwater.federation.view import Entry, LocalView

__all__ = [
    "POLICIES",
    "Alert",
    "Entry",
    "Fetched",
    "Goal",
    "Goals",
    "LocalView",
    "Maintainer",
    "Page",
    "Quality",
    "Remote",
    "WindowKey",
    "policy",
    "remaining_ticks",
    "ticks_in",
]
