"""What the record of a minute can hold. A value beyond was damaged, or an agent is faulty.

An agent sends a probe to a broker and leg every 600 ms, and decides it by a deadline: everything that it
counts or measures in a minute follows from these two. A record within the bounds moves its minute no further
than any other record of its broker.
"""

#: From the scheduled send of a probe to its acknowledgement; a later one is a failure.
ACK_DEADLINE_US = 5_000_000
#: From the scheduled send of a probe until it is consumed; a later one is a failure.
RECEIVE_DEADLINE_US = 10_000_000

#: Probes of a broker and leg in a minute. There are 100; when brokers join or leave, the probes of all others
#: move to other moments, and a broker may get a few more.
MAX_ATTEMPTED = 200
#: Records that are consumed twice or out of order: a client may send a record again until its deadline.
MAX_REPEATED = 10 * MAX_ATTEMPTED
#: Codes by which probes fail; the client library has about 150.
MAX_FAILURE_CODES = 200
#: Brokers of a cluster; the largest known ones have some hundreds.
MAX_BROKERS = 2_000
#: Characters of a name, a code or an ID; Kafka allows 249 in the name of a topic.
MAX_TEXT_LENGTH = 512

#: Brokers that only one of a cluster's records names, of all that are near to it in time. So many may join in
#: a minute of which only one record has arrived yet.
MAX_UNCONFIRMED_BROKERS = 8
