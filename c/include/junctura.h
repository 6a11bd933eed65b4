/* Junctura: hands scientific data over by meaning.
 * Generated from crates/junctura-c by `make header`.
 *
 * Rules of all functions:
 * - A call that can fail returns an int: JCT_OK (0), or the number of an error; JCT_PANIC (255) is a
 *   defect of the library. The text of the calling thread's last error is jct_error_text(). A function
 *   that returns a pointer returns NULL where it fails.
 * - Handles are opaque. Each is freed by the function that its comment names; freeing NULL has no
 *   effect. A constructor puts NULL into its place where it fails. A function that consumes a handle
 *   does so also where it fails.
 * - Options are text: "schema=mars,retention=released:3,if_wanted". A value in parentheses may contain
 *   commas: "retention=(released_by:archive,viewer)". Sizes are written as 4GiB, times as 10min or
 *   1500ms. NULL means the defaults.
 * - Texts that a function takes are UTF-8, end with NUL, and are copied. Texts that a function returns
 *   are borrowed from the handle, and valid as long as its comment states.
 * - Timeouts are seconds. Negative: the call waits forever. 0: it does not wait.
 * - Any number of threads may use a pool at the same time. Every other handle is used by one thread at
 *   a time. Errors belong to the thread. No function makes a callback, starts a thread, or sets a
 *   signal handler, except that a private pool runs its server in a thread. No function may be called
 *   from a signal handler.
 * - After fork the child may use an inherited pool; other inherited handles may only be freed.
 */

#ifndef JUNCTURA_H
#define JUNCTURA_H

#include <stddef.h>
#include <stdint.h>

// The number of the ABI that this header describes. It is in the name of the library, too:
// libjunctura.so.0.
#define JCT_ABI 0

// Success.
#define JCT_OK 0

// Nothing has this name, key or selector.
#define JCT_NOT_FOUND 1

// The key or name is taken, and a second one is refused.
#define JCT_ALREADY_EXISTS 2

// The object existed; the cause states why it was removed.
#define JCT_GONE 3

// The selector cannot be read, or does not fit its attributes.
#define JCT_INVALID_SELECTOR 4

// The schema does not allow the attributes, or two schemas differ.
#define JCT_SCHEMA_MISMATCH 5

// A value cannot be read as the type of its attribute.
#define JCT_TYPE_MISMATCH 6

// An argument that is no attribute is invalid.
#define JCT_INVALID_ARGUMENT 7

// The timeout of the caller expired.
#define JCT_TIMEOUT 8

// Memory and spill are full, and no object was released in time.
#define JCT_POOL_FULL 9

// The bundle has its declared number of members.
#define JCT_BUNDLE_FULL 10

// The bundle is complete or aborted.
#define JCT_BUNDLE_CLOSED 11

// Two callers disagree about one thing.
#define JCT_CONFLICT 12

// No reader wants the object, and it was offered on that condition.
#define JCT_NOT_WANTED 13

// The lease, membership or cursor has ended.
#define JCT_EXPIRED 14

// The pool, connection or handle was closed by its owner.
#define JCT_CLOSED 15

// The connection to the server was lost.
#define JCT_DISCONNECTED 16

// The server cannot be reached or accepts no work.
#define JCT_UNAVAILABLE 17

// The caller is not permitted to do that.
#define JCT_DENIED 18

// Bytes are not what they must be.
#define JCT_CORRUPT 19

// One thing exceeds its limit in size.
#define JCT_TOO_LARGE 20

// There are more things than a limit allows.
#define JCT_LIMIT_EXCEEDED 21

// This build, server or machine does not support that.
#define JCT_UNSUPPORTED 22

// The peer violated the protocol.
#define JCT_PROTOCOL 23

// The wait was interrupted.
#define JCT_INTERRUPTED 24

// The operating system refused a read, write or map.
#define JCT_IO 25

// The library panicked: a defect. The place is printed on standard error. The handles of the call must only
// be freed.
#define JCT_PANIC 255

// Advice: the same call may succeed later.
#define JCT_RETRY 0

// Advice: the call succeeds when its arguments are corrected.
#define JCT_FIX 1

// Advice: neither waiting nor other arguments help.
#define JCT_GIVE_UP 2

// The item is an object.
#define JCT_OBJECT 1

// All objects that existed when the follow began were delivered; later ones are new.
#define JCT_LIVE 2

// Objects were removed before they could be delivered: see jct_follow_gap.
#define JCT_GAP 3

// The follow has ended.
#define JCT_OVER 4

// Row-major: the last index varies fastest, as in C.
#define JCT_ORDER_C 0

// Column-major: the first index varies fastest, as in Fortran.
#define JCT_ORDER_F 1

// Memory in the pool for one payload, until it is offered.
typedef struct jct_allocation_t jct_allocation_t;

// Attributes of an object: names and values.
typedef struct jct_attributes_t jct_attributes_t;

// A bundle that this program has open.
typedef struct jct_bundle_t jct_bundle_t;

// The exchange of an array over ranks that is repeated, such as with every time step.
typedef struct jct_exchange_t jct_exchange_t;

// A follow: a stream of objects.
typedef struct jct_follow_t jct_follow_t;

// How an array is distributed over ranks, and stored in the memory of each.
typedef struct jct_layout_t jct_layout_t;

// A list of objects, read page by page.
typedef struct jct_list_t jct_list_t;

// An object that is held: its payload stays readable until the handle is released.
typedef struct jct_object_t jct_object_t;

// A demand whose answer is awaited later.
typedef struct jct_pending_t jct_pending_t;

// Offers that are sent and not awaited one by one.
typedef struct jct_pipeline_t jct_pipeline_t;

// A pool that this program has open. Any number of threads may use it at the same time.
typedef struct jct_pool_t jct_pool_t;

// A requirement: every object that matches stays until it was received through it and released.
typedef struct jct_requirement_t jct_requirement_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the number of the ABI of the library. A program that loads the library by itself compares it
// with JCT_ABI.
uint32_t jct_abi(void);

// Returns the version of the library, such as "0.1.0". The text is static.
const char *jct_version(void);

// Frees a text that a function returned through a `char **`. The text must not have been changed. NULL has no
// effect.
void jct_free(void *text);

// Returns the number of this thread's last error, JCT_OK where none has occurred. A call that succeeds
// does not change it.
int jct_error_code(void);

// Returns this thread's last error as one line: "code: subject: cause". Empty where none has occurred. The
// text is valid until the next call of this thread that fails.
const char *jct_error_text(void);

// Returns the subject of this thread's last error: an attribute, key, path or peer; may be empty. Valid as
// jct_error_text.
const char *jct_error_subject(void);

// Returns the cause of this thread's last error in words. Valid as jct_error_text.
const char *jct_error_cause(void);

// Returns the name of a number that a function returned, such as "NotFound", the same in every language;
// NULL for any other number. The text is static.
const char *jct_code_name(int code);

// Returns what to do about an error: JCT_RETRY, JCT_FIX or JCT_GIVE_UP.
int jct_code_advice(int code);

// Opens a pool: that at `url` ("unix:NAME", "unix:/path/of/socket", "tcp://HOST:PORT"). Without a
// `url`, NULL or "", it opens the pool that the environment variable JUNCTURA_POOL names; where that is not set, a private
// pool of this process and its children. Blocks until the server has answered, or is found not to exist.
//
// Options (all optional):
//   name=NAME            the name of this client in reports of the pool
//   schema=NAME|FILE     a schema that the pool must have: built in ("free", "mars", ...) or a file;
//                        several: schema=(free,mars), the first of which is the default of a private pool
//   start                starts a server for this machine where none runs
//   timeout=TIME         how long an offer waits for memory (default: forever)
//   store=URL            a store behind the pool, which reads search, too
//   token_file=FILE, ca_file=FILE, transports=WORDS, streams=N: of connections by tcp://
//   budget=SIZE, spill=DIR, spill_size=SIZE, inline_max=SIZE, checked, orphan_timeout=TIME: of a server
//                        that this call starts
//
// Errors: JCT_UNAVAILABLE where no server runs, JCT_DENIED, JCT_UNSUPPORTED for a URL or option that needs
// a feature that was left out of this build, JCT_NOT_FOUND for an unknown schema, JCT_SCHEMA_MISMATCH.
// Close the pool with jct_pool_close.
int jct_pool_open(const char *url,
                  const char *options,
                  jct_pool_t **out);

// Closes a pool and frees its handle. NULL has no effect. Objects that are held stay readable; of other
// handles of this pool every function fails with JCT_CLOSED, and they must be freed as usual. No other
// thread may use the pool's handle during the call.
void jct_pool_close(jct_pool_t *pool);

// Returns when every earlier call through this pool is in effect, even if this process crashes
// afterwards: released objects count as released. Blocks for one round trip, at most `timeout` seconds.
// Errors: JCT_TIMEOUT.
int jct_pool_sync(const jct_pool_t *pool, double timeout);

// Returns the counters of the server as a JSON text. Free it with jct_free. Blocks for one round trip.
int jct_pool_stat(const jct_pool_t *pool, char **json);

// Returns the URL of the pool, also of a private one. The text is valid until the pool is closed. NULL for
// an invalid handle.
const char *jct_pool_url(const jct_pool_t *pool);

// Returns a file descriptor that is readable when something has arrived, for poll and epoll in a loop of
// the caller's. When it is readable, call the functions of the follows and pending demands concerned with
// a timeout of 0, each until it returns JCT_TIMEOUT, then poll again. Nothing is read from the descriptor
// itself. It belongs to the pool: do not close it. It is valid until the pool is closed.
int jct_pool_descriptor(const jct_pool_t *pool, int *descriptor);

// Makes an empty set of attributes. Free it with jct_attributes_free. It can be filled and used any number
// of times.
jct_attributes_t *jct_attributes_new(void);

// Frees a set of attributes. NULL has no effect.
void jct_attributes_free(jct_attributes_t *attributes);

// Removes all attributes from a set.
int jct_attributes_clear(jct_attributes_t *attributes);

// Sets an attribute to a text; replaces an earlier value. The schema reads the text by the type of the
// attribute, so that dates and times can be set by this function; not lists: see jct_attributes_set_list.
int jct_attributes_set_text(jct_attributes_t *attributes, const char *name, const char *value);

// Sets an attribute to an integer; replaces an earlier value.
int jct_attributes_set_int(jct_attributes_t *attributes, const char *name, int64_t value);

// Sets an attribute to a real number; replaces an earlier value.
int jct_attributes_set_real(jct_attributes_t *attributes, const char *name, double value);

// Sets an attribute that is a list to `count` texts; replaces an earlier value.
int jct_attributes_set_list(jct_attributes_t *attributes,
                            const char *name,
                            const char *const *values,
                            size_t count);

// Offers an object: copies `bytes` bytes at `data`, and returns when the object is visible. The memory is
// the caller's again then. `data` may be NULL where `bytes` is 0. Blocks for one round trip, and while the
// pool has no memory for the payload (see timeout of jct_pool_open).
//
// Options: schema=NAME (default: that of the pool),
// retention=withdrawn|archived|released:N|released_by:NAME|TIME, if_wanted (does not offer what no reader
// wants), durability=memory|durable (returns when the object is archived).
//
// Errors: JCT_SCHEMA_MISMATCH and JCT_TYPE_MISMATCH for attributes; JCT_ALREADY_EXISTS; JCT_NOT_WANTED;
// JCT_TOO_LARGE; JCT_POOL_FULL.
int jct_offer(const jct_pool_t *pool,
              const jct_attributes_t *attributes,
              const void *data,
              size_t bytes,
              const char *options);

// Allocates `bytes` bytes in the pool for a payload, which is then filled in place and offered without
// a copy. `*data` is the memory, aligned to 64 bytes where `bytes` exceeds the inline limit of the
// pool (default: 4,096), else as by malloc; what it contains is undefined. Blocks while the pool has no
// memory, for at most the option `timeout` of jct_pool_open. Offer it with jct_allocation_offer, or free
// it with jct_allocation_free.
//
// Errors: JCT_TOO_LARGE, JCT_POOL_FULL.
int jct_allocate(const jct_pool_t *pool, size_t bytes, jct_allocation_t **out, void **data);

// Offers the memory of an allocation and returns when the object is visible. Consumes the allocation, also
// where the call fails: neither the handle nor its memory may be used afterwards. Options and errors:
// those of jct_offer. Blocks for one round trip.
int jct_allocation_offer(jct_allocation_t *allocation,
                         const jct_attributes_t *attributes,
                         const char *options);

// Stages the memory of an allocation in a bundle of the same pool. Consumes the allocation, also where the
// call fails. Options and errors: those of jct_bundle_offer. Blocks for one round trip.
int jct_allocation_stage(jct_allocation_t *allocation,
                         const jct_bundle_t *bundle,
                         const jct_attributes_t *attributes,
                         const char *options);

// Frees an allocation that was not offered; its memory is the pool's again. NULL has no effect.
void jct_allocation_free(jct_allocation_t *allocation);

// Counts the readers that want an object with these attributes: those that would receive it now. Blocks
// for one round trip. Options: schema=NAME. `readers` is 0 where the call fails.
int jct_wanted(const jct_pool_t *pool,
               const jct_attributes_t *attributes,
               const char *options,
               uint64_t *readers);

// Opens a pipeline: its offers return before the server has answered, so that a round trip is not awaited
// with each. Does not block. Close it with jct_pipeline_close.
//
// Options: window=N, offers that may be unanswered at once (default: 64). Errors: JCT_LIMIT_EXCEEDED where
// the connection has too many requests.
int jct_pipeline_open(const jct_pool_t *pool, const char *options, jct_pipeline_t **out);

// Offers an object: copies `bytes` bytes at `data`. The object is visible somewhat later; the memory is the
// caller's again at once. Offers may be gathered before they are sent: see jct_pipeline_push. Blocks while
// the window is full, and while the pool has no memory.
//
// Options: those of jct_offer. Errors: those of jct_offer that are found without the server, and the first
// failure of an earlier offer, after which this one was not sent and may be repeated.
int jct_pipeline_offer(jct_pipeline_t *pipeline,
                       const jct_attributes_t *attributes,
                       const void *data,
                       size_t bytes,
                       const char *options);

// Offers the memory of an allocation of the same pool, as jct_pipeline_offer. Consumes the allocation, also
// where the call fails.
int jct_pipeline_offer_allocation(jct_pipeline_t *pipeline,
                                  jct_allocation_t *allocation,
                                  const jct_attributes_t *attributes,
                                  const char *options);

// Sends the offers that were gathered. Call it before the program turns to something else. Does not wait
// for answers. Errors: JCT_DISCONNECTED, JCT_CLOSED.
int jct_pipeline_push(jct_pipeline_t *pipeline);

// Sends the offers that were gathered, and blocks until every offer is answered: all that succeeded are
// visible. Errors: the first failure that no call has returned; the others were carried out.
int jct_pipeline_flush(jct_pipeline_t *pipeline);

// Closes a pipeline: sends what was gathered, and does not wait for answers. Failures that no call has
// returned are lost: flush before. NULL has no effect.
void jct_pipeline_close(jct_pipeline_t *pipeline);

// Removes all versions of the object with this key from the pool, and returns when they are removed.
// Blocks for at most `timeout` seconds while requirements are owed the object. `count`, which may be NULL,
// is the number of versions that were removed.
//
// Options: schema=NAME; force (removes what requirements are owed, too; their readers get a gap); forget (frees
// the key at once, also that of an object that was removed before; `count` is then the number of keys that
// became free). Errors: JCT_NOT_FOUND, JCT_TIMEOUT.
int jct_withdraw(const jct_pool_t *pool,
                 const jct_attributes_t *attributes,
                 const char *options,
                 double timeout,
                 uint64_t *count);

// Removes every object that matches a selector from the pool; "*" matches all. As jct_withdraw; it is no
// error if nothing matches. `count`, which may be NULL, is the number of objects. Options: force,
// forget.
int jct_withdraw_all(const jct_pool_t *pool,
                     const char *selector,
                     const char *options,
                     double timeout,
                     uint64_t *count);

// Receives the newest object that matches a selector, such as "param=t,step=0/to/24,levelist>=500". Blocks
// until one exists, for at most `timeout` seconds. Release it with jct_object_release.
//
// Options: requirement=NAME (receives through this requirement), incomplete (also what is staged in a
// bundle).
//
// Errors: JCT_TIMEOUT; with a timeout of 0 JCT_NOT_FOUND; JCT_INVALID_SELECTOR; JCT_NOT_WANTED where its
// producer did not offer it since no reader wanted it; JCT_LIMIT_EXCEEDED.
int jct_demand(const jct_pool_t *pool,
               const char *selector,
               const char *options,
               double timeout,
               jct_object_t **out);

// Receives the object whose key has exactly these attributes, as jct_demand. Also JCT_GONE where the
// object existed and was removed; the cause states why. Options: those of jct_demand, and schema=NAME.
int jct_demand_key(const jct_pool_t *pool,
                   const jct_attributes_t *attributes,
                   const char *options,
                   double timeout,
                   jct_object_t **out);

// Begins a demand and does not block: jct_pending_take returns the answer later, and the program computes
// until then. `timeout` is that of the demand. Options: those of jct_demand. Free it with
// jct_pending_free.
int jct_begin_demand(const jct_pool_t *pool,
                     const char *selector,
                     const char *options,
                     double timeout,
                     jct_pending_t **out);

// Takes the object of a demand that was begun. Blocks for at most `timeout` seconds; JCT_TIMEOUT where it
// has not arrived, and the call may be repeated. Other errors: those of jct_demand, once; JCT_NOT_FOUND
// where the answer was taken before.
int jct_pending_take(jct_pending_t *pending, double timeout, jct_object_t **out);

// Frees a demand that was begun, and cancels it. NULL has no effect. Does not block.
void jct_pending_free(jct_pending_t *pending);

// Returns the payload of an object: read-only memory, which other processes share. A write to it ends the
// program with SIGSEGV. Valid until the object is released. `bytes`, which may be NULL, is its length.
// NULL for an invalid handle; the address of an empty payload is not to be read.
const void *jct_object_data(const jct_object_t *object, size_t *bytes);

// Returns the canonical key of an object. Valid until the object is released. NULL for an invalid handle.
const char *jct_object_key(const jct_object_t *object);

// Returns the canonical value of an attribute, by its name or an alias; NULL where the object has none,
// and for invalid arguments. Valid until the object is released.
const char *jct_object_get(const jct_object_t *object, const char *name);

// Returns the number of an object's version; a newer version of the same key has a greater one. 0 for an
// invalid handle, and for an object that is staged in a bundle.
uint64_t jct_object_version(const jct_object_t *object);

// Returns 1 where the object was delivered through the same group or named requirement before, and not
// released there; 0 otherwise, and for an invalid handle.
int jct_object_redelivered(const jct_object_t *object);

// Releases an object and frees its handle; its payload and texts must not be read afterwards. The follow or
// requirement that delivered it counts it as done. Releases may be sent together somewhat later: jct_pool_sync waits
// for them. Does not block. NULL has no effect.
void jct_object_release(jct_object_t *object);

// Frees an object's handle without being done with it: the group or requirement that it came through
// delivers it again. An object that came otherwise is released. Does not block. Consumes the handle, also
// where the call fails.
int jct_object_give_back(jct_object_t *object);

// Follows every object that matches a selector: those that exist, then those that are offered; "" matches
// all. Each version of each object is delivered at most once, and none is missed in between. Blocks for
// one round trip. Close it with jct_follow_close.
//
// Options:
//   window=N             objects that may be unreleased at once (default: 256; 8 for a member of a group)
//   only_new             omits what exists
//   until_live           ends when all that existed was delivered
//   order_by=NAME        sorts what exists by an attribute (default: by key)
//   cursor=TEXT          continues after an earlier follow: see jct_follow_cursor
//   requirement=NAME     receives what this requirement is owed; the selector must be ""
//   group=NAME           receives as a member of this consumer group, which is made where it does not exist
//   versions=all|newest, time_to_live=TIME: of a group that this call makes
//
// Errors: JCT_INVALID_SELECTOR, JCT_EXPIRED for the cursor of an earlier server, JCT_NOT_FOUND for a
// requirement, JCT_CONFLICT.
int jct_follow(const jct_pool_t *pool, const char *selector, const char *options, jct_follow_t **out);

// Follows as one more member of a consumer group that exists, with any selector. Options: window=N,
// until_live. As jct_follow. Errors: JCT_NOT_FOUND, JCT_CONFLICT where the name is that of a requirement
// for one reader.
int jct_join(const jct_pool_t *pool, const char *group, const char *options, jct_follow_t **out);

// Takes the next item of a follow. Blocks for at most `timeout` seconds; JCT_TIMEOUT where none has
// arrived. `kind` is JCT_OBJECT, JCT_LIVE, JCT_GAP or JCT_OVER, 0 where the call fails; `object` is NULL
// except for JCT_OBJECT. Release the object with jct_object_release: a follow delivers no more than its
// window of objects that are unreleased.
//
// Errors: JCT_TIMEOUT; JCT_CORRUPT for an object whose payload was changed, after which the follow
// continues; JCT_LIMIT_EXCEEDED where more waits for this reader than the server keeps: it has ended then;
// JCT_DISCONNECTED.
int jct_follow_next(jct_follow_t *follow, double timeout, jct_object_t **object, int *kind);

// Describes the last gap of a follow: how many objects were missed, and why ("withdrawn", "expired", ...).
// Both places may be NULL. The text is valid until the next gap, or until the follow is closed; it is
// empty where there was no gap.
int jct_follow_gap(const jct_follow_t *follow, uint64_t *objects, const char **reason);

// Returns the cursor behind the last object that a follow delivered: a text with which a later follow
// continues, also in another process. Empty before the first object; an empty cursor is as none. The text is valid until this function
// is called again, or until the follow is closed. NULL for an invalid handle.
const char *jct_follow_cursor(jct_follow_t *follow);

// Ends a follow and frees its handle. Objects that it delivered stay held. NULL has no effect. Blocks for
// one round trip at most.
void jct_follow_close(jct_follow_t *follow);

// Requires every object that matches a selector, from what is visible now on: each stays until it was
// received through this requirement and released. Blocks for one round trip. Free it with
// jct_requirement_free, or end it with jct_requirement_retract.
//
// Options:
//   name=NAME           a requirement that outlives this client; a later call with the name continues it
//   group               with a name: a consumer group, whose members share what it is owed
//   versions=all|newest which versions of each key are owed (default: all)
//   time_to_live=TIME   how long a named one lasts while no client uses it (default: forever)
//   on_full=wait|break  where the pool is full: offers wait for its readers (default), or it is broken
//   quota=SIZE          with on_full=break: the bytes that it may keep
//   stuck_after=TIME    how long its readers may release nothing while offers wait for them
//
// Errors: JCT_CONFLICT where the name has other options, JCT_INVALID_SELECTOR, JCT_LIMIT_EXCEEDED.
int jct_require(const jct_pool_t *pool, const char *selector, const char *options, jct_requirement_t **out);

// Follows what a requirement is owed, oldest first. Options: window=N, until_live. As jct_follow. Blocks
// for one round trip.
int jct_requirement_follow(const jct_requirement_t *requirement, const char *options, jct_follow_t **out);

// Ends a requirement: what only it kept may be removed. Consumes the handle, also where the call fails.
// Blocks for one round trip.
int jct_requirement_retract(jct_requirement_t *requirement);

// Frees the handle of a requirement. One without a name ends; one with a name lasts. NULL has no effect.
// Blocks for one round trip at most.
void jct_requirement_free(jct_requirement_t *requirement);

// Ends the requirement or group of a name, whichever client made it. `owed`, which may be NULL, is the
// number of objects that it was still owed. Blocks for one round trip. Errors: JCT_NOT_FOUND.
int jct_retract(const jct_pool_t *pool, const char *name, uint64_t *owed);

// Lists the objects that match a selector, in the order of their keys; "" matches all. The list is a
// snapshot. Blocks for one round trip, and jct_list_next for one with each page. Close it with
// jct_list_close.
//
// Options: order_by=NAME (an attribute), incomplete (also what is staged in bundles), bundle=PATH (what is
// staged there). Errors: JCT_INVALID_SELECTOR, JCT_NOT_FOUND for a bundle.
int jct_list(const jct_pool_t *pool, const char *selector, const char *options, jct_list_t **out);

// Takes the next object of a list: `*key` is its canonical key, and `*bytes`, which may be NULL, the
// length of its payload. At the end `*key` is NULL. The text is valid until this function is called again,
// or until the list is closed.
int jct_list_next(jct_list_t *list, const char **key, uint64_t *bytes);

// Returns the canonical value of an attribute of the object that jct_list_next took last; NULL where it
// has none, and for invalid arguments. Valid as its key.
const char *jct_list_get(const jct_list_t *list, const char *name);

// Closes a list. NULL has no effect. Blocks for one round trip at most.
void jct_list_close(jct_list_t *list);

// Opens a bundle: what is offered into it becomes visible at one moment, or not at all. Without a `path`,
// NULL or "", the bundle is this program's alone, and takes no attributes and no options. With a path
// ("run/step=6") producers that open the same path share it, and `attributes`, which may be NULL, states
// what its members have in common. Blocks for one round trip. Close it with jct_bundle_close.
//
// Options: members=N (it becomes visible with its N-th member), orphan_timeout=TIME (it is aborted when no
// producer has had it open for so long), schema=NAME. Errors: JCT_CONFLICT where others opened it with
// other options, JCT_BUNDLE_CLOSED, JCT_LIMIT_EXCEEDED.
int jct_bundle_open(const jct_pool_t *pool,
                    const char *path,
                    const jct_attributes_t *attributes,
                    const char *options,
                    jct_bundle_t **out);

// Offers an object into a bundle: copies `bytes` bytes at `data`, and returns when it is staged. Options
// and blocking: those of jct_offer, and a retention for a time counts from when the bundle is visible.
//
// Errors: those of jct_offer; JCT_BUNDLE_FULL; JCT_BUNDLE_CLOSED; JCT_CLOSED where it was aborted;
// JCT_POOL_FULL at once where staged members fill the memory.
int jct_bundle_offer(const jct_bundle_t *bundle,
                     const jct_attributes_t *attributes,
                     const void *data,
                     size_t bytes,
                     const char *options);

// Allocates memory for a member of a bundle, as jct_allocate. Stage it with jct_allocation_stage. Errors:
// JCT_TOO_LARGE, JCT_POOL_FULL.
int jct_bundle_allocate(const jct_bundle_t *bundle, size_t bytes, jct_allocation_t **out, void **data);

// Makes all members of a bundle visible at one moment. `objects`, which may be NULL, is their number.
// Blocks for one round trip. Errors: JCT_CONFLICT where its number of members was stated,
// JCT_BUNDLE_CLOSED, JCT_CLOSED where it was aborted.
int jct_bundle_seal(const jct_bundle_t *bundle, uint64_t *objects);

// Waits until a bundle is visible, whichever producer completes it. Blocks for at most `timeout` seconds.
// `objects`, which may be NULL, is the number of objects. Errors: JCT_TIMEOUT, JCT_CLOSED where it was
// aborted.
int jct_bundle_wait(const jct_bundle_t *bundle, double timeout, uint64_t *objects);

// Aborts a bundle for all producers: its members are freed, and no reader has seen them. Blocks for one
// round trip. The handle must still be closed. Errors: JCT_BUNDLE_CLOSED, JCT_CLOSED.
int jct_bundle_abort(const jct_bundle_t *bundle);

// Closes the handle of a bundle. A bundle without a path that was not sealed is aborted; one with a path
// is left to the other producers. NULL has no effect. Blocks for one round trip at most.
void jct_bundle_close(jct_bundle_t *bundle);

// Reads a layout, such as "shape=360x180 grid=1x4 order=F": an array of 360 by 180 elements, its columns
// distributed over 4 ranks, column-major. Every rank that has the same text has the same layout. Does not
// block. Free it with jct_layout_free. Errors: JCT_INVALID_ARGUMENT, JCT_LIMIT_EXCEEDED.
int jct_layout_parse(const char *layout, jct_layout_t **out);

// Makes a layout of blocks: block i has the indices from `starts[i]` to `starts[i] + counts[i]` of
// each dimension, and is stored by rank `ranks[i]`. `shape` has one number for each dimension,
// `starts` and `counts` have `dimensions` numbers for each of `blocks` blocks, `ranks` has one for
// each block. All arrays are copied. A rank that has several blocks stores them one behind the other.
// `order` is JCT_ORDER_C or JCT_ORDER_F. Does not block. Free it with jct_layout_free. Blocks of
// consumers may overlap and leave out elements; those of producers must cover the array once. Errors:
// JCT_INVALID_ARGUMENT, JCT_LIMIT_EXCEEDED.
int jct_layout_blocks(size_t dimensions,
                      const uint64_t *shape,
                      size_t blocks,
                      const uint64_t *ranks,
                      const uint64_t *starts,
                      const uint64_t *counts,
                      int order,
                      jct_layout_t **out);

// Frees a layout. NULL has no effect. Exchanges that were opened with it are not affected.
void jct_layout_free(jct_layout_t *layout);

// Returns the number of ranks of a layout.
int jct_layout_ranks(const jct_layout_t *layout, uint64_t *ranks);

// Returns the number of elements that the memory of a rank has room for: the length of the arrays that it
// passes to jct_offer_piece, jct_demand_array, jct_exchange_put and jct_exchange_get. Errors:
// JCT_INVALID_ARGUMENT where there is no such rank.
int jct_layout_elements(const jct_layout_t *layout, uint64_t rank, uint64_t *elements);

// Returns how many indices a rank has in a dimension, counted from 0. Errors: JCT_INVALID_ARGUMENT where
// there is no such rank or dimension, and where the rank has several blocks.
int jct_layout_extent(const jct_layout_t *layout, uint64_t rank, size_t dimension, uint64_t *extent);

// Returns the first index of the whole array that a rank has in a dimension, counted from 0. Does not
// block. Errors: JCT_INVALID_ARGUMENT where there is no such rank or dimension, where the rank has several
// blocks or no index, and where its indices are not contiguous.
int jct_layout_start(const jct_layout_t *layout, uint64_t rank, size_t dimension, uint64_t *start);

// Offers the piece of an array that `rank` has in `layout`: `bytes` bytes at `data`, which are copied.
// Every rank calls it with the same attributes, and the array becomes visible with its last piece;
// consumers receive it in a layout of their own. `type` is that of the elements: "f4", "f8", "i4", "i8",
// "u1", "c8", ... Blocks for one round trip.
//
// Options: those of jct_offer, and epoch=N, which distinguishes versions of one key. Errors: those of
// jct_offer; JCT_INVALID_ARGUMENT where `bytes` is not what the rank has (see jct_layout_elements);
// JCT_CONFLICT where ranks have different layouts.
int jct_offer_piece(const jct_pool_t *pool,
                    const jct_layout_t *layout,
                    uint64_t rank,
                    const char *type,
                    const jct_attributes_t *attributes,
                    const void *data,
                    size_t bytes,
                    const char *options);

// Receives the part of an array that `rank` has in `layout`, in any layout of its producers: copies
// it to `bytes` bytes at `data`. The attributes are those of the array's key. Elements are converted to
// `type` where it differs. Also of an object that is an array by itself. Blocks until all pieces are
// offered, for at most `timeout` seconds. Gaps of the layout are not written.
//
// Options: schema=NAME. Errors: those of jct_demand_key, where the cause of JCT_TIMEOUT names the ranks
// that are missing; JCT_INVALID_ARGUMENT where the layouts do not fit or `bytes` is not what the rank has;
// JCT_UNSUPPORTED for a conversion.
int jct_demand_array(const jct_pool_t *pool,
                     const jct_attributes_t *attributes,
                     const jct_layout_t *layout,
                     uint64_t rank,
                     const char *type,
                     void *data,
                     size_t bytes,
                     const char *options,
                     double timeout);

// Opens an exchange: states once what stays the same with every step, for `rank` in `layout`. `common`,
// which may be NULL, are attributes of every array; they are copied. `type` as in jct_offer_piece. Does
// not block. Close it with jct_exchange_close.
//
// Options: schema=NAME, retention=... as in jct_offer. Errors: JCT_INVALID_ARGUMENT where there is no such
// rank.
int jct_exchange_open(const jct_pool_t *pool,
                      const jct_layout_t *layout,
                      uint64_t rank,
                      const char *type,
                      const jct_attributes_t *common,
                      const char *options,
                      jct_exchange_t **out);

// Offers the rank's piece of the array that has the common attributes and these, which may be NULL. The
// bytes are copied. Blocks for one round trip. Errors: those of jct_offer_piece.
int jct_exchange_put(const jct_exchange_t *exchange,
                     const jct_attributes_t *attributes,
                     const void *data,
                     size_t bytes);

// Receives the rank's part of the array whose key has the common attributes and these, which may be NULL,
// into `bytes` bytes at `data`. Blocks until all pieces are offered, for at most `timeout` seconds.
// Errors: those of jct_demand_array.
int jct_exchange_get(const jct_exchange_t *exchange,
                     const jct_attributes_t *attributes,
                     double timeout,
                     void *data,
                     size_t bytes);

// Closes an exchange. NULL has no effect. Does not block.
void jct_exchange_close(jct_exchange_t *exchange);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* JUNCTURA_H */
