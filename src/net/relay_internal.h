/* What the files of hutch-relay share. */
#pragma once

#include <sys/epoll.h>

#include "credential.h"
#include "dns.h"
#include "gate.h"
#include "proxy.h"
#include "relay.h"

struct relay;
struct flow;

/* Something that epoll watches; the first member of what it belongs to. */
struct source {
        void (*handle)(struct relay *relay, struct source *source, uint32_t events);
        int fd;
};

/* An address that an allowed name led to. */
struct pin {
        struct pin *next; /* of the same hash */
        struct address address;
        uint64_t until_ms, opened_ms;
        char name[NAME_MAX_LENGTH + 1];
};

#define PIN_BUCKETS 1024
#define MAX_PINS 4096
#define MAX_REFUSALS 512
#define PROXIES 8
#define MAX_PIPES 64 /* in a pool */
#define LARGE_PIPES 16

struct refusal {
        uint64_t hash;
};

struct hosts_entry {
        char name[NAME_MAX_LENGTH + 1];
        struct address address;
};

#define MAX_SEARCH 16

struct resolver {
        struct address servers[4];
        size_t n_servers;
        char search[MAX_SEARCH][NAME_MAX_LENGTH + 1]; /* programs append these to names */
        size_t n_search;
        struct hosts_entry *hosts;
        size_t n_hosts;
        struct lookup *lookups;
        size_t n_lookups;
        struct dns_socket *sockets;
        size_t n_sockets;
        struct dns_stream *streams;
        size_t n_streams;
};

struct waiting {
        struct flow *first, *last;
};

struct relay {
        int epoll, gate;
        struct source control, listeners[GATE_SOCKETS];
        struct relay_config config;
        struct net_rule *rules;
        const char **rule_texts;     /* as they were given */
        size_t n_rules, n_own_rules; /* own: a person's; the others are addresses of /etc/hosts */
        uint16_t host_ports[256];
        size_t n_host_ports;
        bool all_host_ports;
        struct pin *pins[PIN_BUCKETS];
        size_t n_pins;
        struct proxy proxy; /* that hosts are reached through, if there are addresses of it */
        struct address proxies[PROXIES];
        size_t n_proxies;
        uint32_t n_invented; /* addresses for names that the proxy resolves */
        uint64_t refusals[MAX_REFUSALS];
        size_t n_refusals;
        uint64_t n_cut, n_unsent; /* refusals that are not reported, events that could not be sent */
        struct resolver resolver;
        struct {
                struct flow *of[512]; /* connections whose box is still waiting, by hash */
                size_t n;
                uint64_t swept_ms;
        } held;
        size_t n_flows, max_flows, n_published; /* of them published, each with a separate listener */
        struct published *published;
        bool paused; /* listeners are not watched: there are too many flows */
        struct flow *ready, *dead;
        struct waiting openings;                  /* flows whose first bytes are awaited */
        size_t opening_bytes;                     /* of memory for them */
        struct waiting rivals, connects, leavers; /* flows that connect, in the order of their time */
        size_t n_rivals;
        struct pipes {
                int ends[MAX_PIPES][2];
                size_t n;
        } small, large; /* that are empty */
        size_t n_large; /* in use or not */
        struct datagram *datagrams;
        size_t n_datagrams;
        uint64_t swept_ms;
        struct {
                struct source source;    /* requests of init */
                struct shared *of[1024]; /* sockets of the box, by inode number */
                struct shared *dead;
                size_t n, n_timed;
                uint64_t *recent; /* sockets that were connected */
                size_t n_recent;
                struct nscd_client *clients;
                size_t n_clients;
        } shared;           /* of a box that shares the host's network */
        struct source link; /* to hutch-credential, where there is one */
        struct stand_in *stand_ins;
        size_t n_stand_ins, n_dials;
        struct dial *dials;
};

uint64_t relay_now_ms(void);
int relay_watch(struct relay *relay, struct source *source, uint32_t events);

/* ---- decisions (judge.c) ---- */
struct verdict {
        bool allowed, host, proxied; /* host: a port of the host's loopback */
        char name[NAME_MAX_LENGTH + 1];
        const struct net_rule *rule;
};

bool relay_is_own(const struct address *a); /* of the host */
void relay_judge(struct relay *relay, const struct address *a, uint16_t port, bool udp, struct verdict *ret);
/* network.strict: a connection to that address which asks for the name; without a name. A verdict that has a rule but
 * is not allowed: the name does not lead there. */
void relay_judge_name(struct relay *relay, const struct address *a, uint16_t port, const char *name,
                      struct verdict *ret);
void relay_judge_plain(struct relay *relay, const struct address *a, uint16_t port, struct verdict *ret);
/* The address that stands for a name which the upstream proxy resolves. */
int relay_invent(struct relay *relay, const char *name, int family, struct address *ret);
/* Pins the addresses of an answer and removes those that may not be reached; -errno if nothing can be pinned. */
int relay_pin(struct relay *relay, const char *name, struct dns_answer *answer);
/* Addresses that lead to `name` as `a` does, those of the other family first. */
size_t relay_find_siblings(struct relay *relay, const char *name, const struct address *a, uint16_t port,
                           struct address *ret, size_t most);
/* Whether an address that a credential's host has may be connected to; reports it where not. */
bool relay_admits(struct relay *relay, const char *name, const struct address *a, uint16_t port);
void relay_report_credential(struct relay *relay, const char *host, uint16_t port, int errnum, const char *text);
void relay_report_credential_use(struct relay *relay, enum relay_event_kind kind, const char *host,
                                 const struct address *a, uint16_t port, uint64_t sent, uint64_t received);
void relay_refuse_name(struct relay *relay, const char *name, const char *rule);
void relay_refuse_address(struct relay *relay, const struct address *a, uint16_t port, bool udp, const char *rule);
/* A connection was refused after it was accepted, by its first bytes or by the upstream proxy. */
void relay_refuse_opening(struct relay *relay, const struct address *a, uint16_t port, const char *name,
                          const char *rule);
bool relay_is_tcp_only(const struct relay *relay);
/* The other side refused: a held connection ends likewise, one that was accepted before is reset now; a datagram was
 * sent in vain. */
enum unreached { UNREACHED_HELD, UNREACHED_RESET, UNREACHED_UDP };
void relay_report_unreached(struct relay *relay, const struct address *a, uint16_t port, enum unreached what,
                            const char *name, int errnum, const char *why);
void relay_report_unknown(struct relay *relay, const char *name, int errnum);
void relay_report(struct relay *relay, enum relay_event_kind kind, const struct address *a, uint16_t port, bool udp,
                  const char *name, const struct net_rule *rule, uint64_t sent, uint64_t received);
void relay_report_resolved(struct relay *relay, const char *name, const struct dns_answer *answer);
void relay_report_published(struct relay *relay, enum relay_event_kind kind, const struct address *a, uint16_t port,
                            uint64_t sent, uint64_t received);
void relay_report_lost(struct relay *relay, int flags); /* if anything was */
void relay_flush(struct relay *relay);
void relay_on_log(struct relay *relay, struct source *source, uint32_t events);

/* ---- TCP (flow.c, strict.c, connect.c) ---- */
void relay_on_connection(struct relay *relay, struct source *source, uint32_t events);
void relay_run_ready(struct relay *relay);
void relay_bury(struct relay *relay);
void relay_resume(struct relay *relay);
int flow_timeout(const struct relay *relay, uint64_t now);
void flow_tick(struct relay *relay, uint64_t now);

/* ---- held connections (hold.c) ---- */
void hold_on_packets(struct relay *relay, struct source *source, uint32_t events);
int hold_timeout(const struct relay *relay);
void hold_tick(struct relay *relay, uint64_t now);

/* ---- publishing (publish.c) ---- */
int publish_open(struct relay *relay, uint16_t host_port, uint16_t port, bool fixed, uint16_t *ret_port);
void publish_close(struct relay *relay, uint16_t port);
/* Carries an accepted connection of the host's to a port of the box; takes fd. */
void flow_into_box(struct relay *relay, int fd, uint16_t port);

/* ---- UDP (datagram.c) ---- */
void relay_on_datagram(struct relay *relay, struct source *source, uint32_t events);
void datagram_sweep(struct relay *relay, uint64_t now);

/* ---- sockets of a box that shares the host's network (shared.c) ---- */
int shared_open(struct relay *relay, int fd);
void shared_bury(struct relay *relay);
int shared_timeout(const struct relay *relay, uint64_t now);
void shared_tick(struct relay *relay, uint64_t now);

/* ---- and its names (nscd.c) ---- */
void nscd_serve(struct relay *relay, int fd); /* takes fd */
void nscd_answered(struct relay *relay, uint64_t id, uint16_t type, const struct dns_answer *a);
int nscd_timeout(const struct relay *relay);
void nscd_tick(struct relay *relay, uint64_t now);

/* ---- questions to the host's name servers (upstream.c) ---- */
struct lookup {
        struct source source; /* the socket to the host's server */
        struct lookup *next;
        struct dns_question question;
        struct address server, client; /* of the box, by datagram */
        uint16_t client_port;
        uint64_t stream; /* of the box; 0: by datagram */
        uint64_t nscd;   /* the client that asks by nscd's protocol, 0: none */
        uint16_t id;
        unsigned tries;
        uint64_t until_ms;
        size_t stand_in;  /* of a credential's host: its number, from 1 */
        bool plain, sent; /* plain: without EDNS; sent: by TCP, the question */
        uint8_t *reply;   /* by TCP; NULL: by datagram */
        size_t replied;
        struct dns_answer cut; /* what fitted a datagram */
        bool dead;
};

/* The next server, or the same one in another way; -ETIMEDOUT after the last. */
int upstream_ask(struct relay *relay, struct lookup *l);
void resolver_answered(struct relay *relay, struct lookup *l, struct dns_answer *a);

/* ---- names (resolver.c) ---- */
void resolver_read_files(struct resolver *resolver);
/* Waits for the addresses of a name that the relay itself needs. Returns how many. */
size_t resolver_find_now(const struct resolver *resolver, const char *name, struct address *ret, size_t most);
void resolver_take_texts(struct resolver *resolver, char *resolv_conf, char *hosts); /* the texts are changed */
void resolver_start(struct relay *relay, const struct lookup *from);                 /* answered at once or later */
void resolver_on_packet(struct relay *relay, const uint8_t *data, size_t len, const struct address *server,
                        const struct address *client, uint16_t client_port);
void resolver_on_stream(struct relay *relay, int fd, bool packets); /* takes fd */
void resolver_look_up(struct relay *relay, const char *name, uint16_t type,
                      size_t stand_in); /* see handoff_resolved() */
int resolver_timeout(const struct relay *relay, uint64_t now);
void resolver_tick(struct relay *relay, uint64_t now);

/* ---- hutch-credential (handoff.c) ---- */
int handoff_read_config(struct relay *relay, struct hutch_error *err);
size_t handoff_add_rules(const struct relay *relay, struct net_rule *ret); /* ways to the addresses inside */
int handoff_start(struct relay *relay, struct hutch_error *err);           /* waits until it is ready */
bool handoff_find_name(const struct relay *relay, const char *name, struct address *ret); /* HOST.hutch.internal */
const char *handoff_find_address(const struct relay *relay, const struct address *a);     /* its host */
bool handoff_has_host(const struct relay *relay, const char *name);
bool handoff_take(struct relay *relay, int fd, const struct address *a, uint16_t port); /* takes fd if it is true */
void handoff_resolved(struct relay *relay, size_t index, const struct dns_answer *a, int errnum);
int handoff_timeout(const struct relay *relay, uint64_t now);
void handoff_tick(struct relay *relay, uint64_t now);
