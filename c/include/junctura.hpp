/* Junctura: hands scientific data over by meaning. C++17, over the C library; nothing is to be linked but that.
 *
 * Rules of all functions:
 * - A call that fails throws junctura::Error, with the number, subject and cause of the error. Destructors do not throw.
 * - An object of these classes owns a handle. It is moved, not copied, and frees the handle at its end. A moved-from
 *   or closed object may be assigned to and destroyed; any other call throws an Error of JCT_INVALID_ARGUMENT.
 * - Options are text: "schema=mars,retention=released:3". junctura.h lists the options and the errors of the function of
 *   C that each comment names, and states what blocks.
 * - Timeouts are seconds. `forever` (the default) waits forever, 0 does not wait.
 * - Texts and spans that a function returns are borrowed from the object that returned them, unless they are a
 *   std::string.
 * - Any number of threads may use a Pool at the same time. Every other object is used by one thread at a time.
 */

#ifndef JUNCTURA_HPP
#define JUNCTURA_HPP

#include <junctura.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace junctura {

/* A timeout that does not expire. */
constexpr double forever = -1.0;

/* An error of a call. */
class Error : public std::exception {
public:
    /* The last error of this thread. */
    explicit Error(int code)
        : code_(code), text_(jct_error_text()), subject_(jct_error_subject()), cause_(jct_error_cause()) {}
    /* An error that this header finds. */
    Error(int code, const std::string &subject, const std::string &cause)
        : code_(code), text_(std::string(jct_code_name(code)) + ": " + subject + ": " + cause), subject_(subject),
          cause_(cause) {}

    /* Its number, such as JCT_TIMEOUT. */
    int code() const noexcept { return code_; }
    /* Its name, such as "Timeout", the same in every language. */
    const char *name() const noexcept { return jct_code_name(code_); }
    /* Its text in one line: code, subject and cause. */
    const char *what() const noexcept override { return text_.c_str(); }
    /* The attribute, key, path or peer that it is about; may be empty. */
    const std::string &subject() const noexcept { return subject_; }
    /* Its cause in words. */
    const std::string &cause() const noexcept { return cause_; }
    /* What to do: JCT_RETRY, JCT_FIX or JCT_GIVE_UP. */
    int advice() const noexcept { return jct_code_advice(code_); }

private:
    int code_;
    std::string text_, subject_, cause_;
};

/* Elements in memory that another object owns. */
template <typename T> class Span {
public:
    constexpr Span() noexcept = default;
    constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t index) const noexcept { return data_[index]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

namespace detail {

inline void check(int code) {
    if (code != JCT_OK)
        throw Error(code);
}

/* A handle, freed at its end. */
template <typename T, void (*Free)(T *)> class Handle {
public:
    Handle() noexcept = default;
    explicit Handle(T *handle) noexcept : handle_(handle) {}
    Handle(Handle &&other) noexcept : handle_(other.release()) {}
    Handle &operator=(Handle &&other) noexcept {
        if (this != &other) {
            reset();
            handle_ = other.release();
        }
        return *this;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { reset(); }
    T *get() const noexcept { return handle_; }
    T *release() noexcept { return std::exchange(handle_, nullptr); }
    void reset() noexcept { Free(release()); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    T *handle_ = nullptr;
};

/* The payload of an offer: any contiguous range of elements, such as std::vector, std::array, std::string, Span. */
template <typename Range> using ElementOf = std::remove_reference_t<decltype(*std::declval<Range &>().data())>;

template <typename Range> std::size_t bytes_of(const Range &range) {
    static_assert(std::is_trivially_copyable_v<ElementOf<const Range>>, "elements are copied as bytes");
    return range.size() * sizeof(ElementOf<const Range>);
}

inline const char *text_or_empty(const char *text) noexcept { return text ? text : ""; }

} // namespace detail

/* Returns the name of a type of elements as arrays have it: "f8" for double, "i4" for int32_t. */
template <typename T> constexpr const char *type_of() {
    using Type = std::remove_cv_t<T>;
    static_assert(std::is_arithmetic_v<Type> && !std::is_same_v<Type, bool> && sizeof(Type) <= 8,
                  "arrays have numbers of at most 8 bytes");
    constexpr const char *of_size[4][3] = {{"", "i1", "u1"}, {"", "i2", "u2"}, {"f4", "i4", "u4"}, {"f8", "i8", "u8"}};
    constexpr int size = sizeof(Type) == 1 ? 0 : sizeof(Type) == 2 ? 1 : sizeof(Type) == 4 ? 2 : 3;
    return of_size[size][std::is_floating_point_v<Type> ? 0 : std::is_signed_v<Type> ? 1 : 2];
}

/* Attributes of an object: names and values. */
class Attributes {
public:
    /* Makes an empty set. As jct_attributes_new. */
    Attributes() : handle_(jct_attributes_new()) {
        if (!handle_)
            throw Error(jct_error_code());
    }
    /* Makes a set of texts: {{"param", "t"}, {"step", "6"}}. */
    Attributes(std::initializer_list<std::pair<const char *, std::string>> texts) : Attributes() {
        for (const auto &[name, value] : texts)
            set(name, value);
    }
    /* Sets an attribute to a text; the schema reads it by the type of the attribute. As jct_attributes_set_text. */
    Attributes &set(const std::string &name, const char *value) {
        detail::check(jct_attributes_set_text(get(), name.c_str(), value));
        return *this;
    }
    Attributes &set(const std::string &name, const std::string &value) { return set(name, value.c_str()); }
    /* Sets an attribute to an integer or to a real number. As jct_attributes_set_int, jct_attributes_set_real. */
    template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
    Attributes &set(const std::string &name, T value) {
        static_assert(!std::is_same_v<T, bool>, "attributes have no truth values");
        static_assert(!std::is_same_v<T, std::uint64_t>, "attributes are signed: convert to std::int64_t");
        if constexpr (std::is_integral_v<T>)
            detail::check(jct_attributes_set_int(get(), name.c_str(), static_cast<std::int64_t>(value)));
        else
            detail::check(jct_attributes_set_real(get(), name.c_str(), static_cast<double>(value)));
        return *this;
    }
    /* Sets an attribute that is a list. As jct_attributes_set_list. */
    Attributes &set_list(const std::string &name, const std::vector<std::string> &values) {
        std::vector<const char *> texts;
        for (const std::string &value : values)
            texts.push_back(value.c_str());
        detail::check(jct_attributes_set_list(get(), name.c_str(), texts.data(), texts.size()));
        return *this;
    }
    /* Removes all attributes. */
    void clear() { detail::check(jct_attributes_clear(get())); }
    /* The handle of C, which this object keeps. */
    jct_attributes_t *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<jct_attributes_t, jct_attributes_free> handle_;
};

class Layout;
class Pool;

/* An object that is held: its payload stays readable until this ends. */
class Object {
public:
    Object() noexcept = default;
    explicit Object(jct_object_t *handle) noexcept : handle_(handle) {}
    /* Returns the payload as elements of a type: read-only memory that other processes share. Throws where its length is
     * not a multiple of theirs. Does not block. As jct_object_data. */
    template <typename T = std::uint8_t> Span<const T> data() const {
        static_assert(std::is_trivially_copyable_v<T>, "a payload is bytes");
        std::size_t bytes;
        const void *payload = jct_object_data(get(), &bytes);
        if (!payload)
            throw Error(jct_error_code());
        if (bytes % sizeof(T) != 0)
            throw Error(JCT_INVALID_ARGUMENT, "payload", "its length is no multiple of that of an element");
        return {static_cast<const T *>(payload), bytes / sizeof(T)};
    }
    /* Returns a copy of the payload as a text. */
    std::string text() const {
        const Span<const char> letters = data<char>();
        return {letters.data(), letters.size()};
    }
    /* Returns the canonical key. */
    const char *key() const noexcept { return detail::text_or_empty(jct_object_key(get())); }
    /* Returns the canonical value of an attribute; nullptr where the object has none. As jct_object_get. */
    const char *get(const std::string &name) const noexcept { return jct_object_get(get(), name.c_str()); }
    /* Returns the number of the version; a newer version of the same key has a greater one. */
    std::uint64_t version() const noexcept { return jct_object_version(get()); }
    /* Returns whether the object was delivered through the same group or named requirement before. */
    bool redelivered() const noexcept { return jct_object_redelivered(get()) == 1; }
    /* Receives the part that `rank` has in `layout` of an array that is held, which stays held. As jct_object_take. */
    template <typename Range>
    void take(const Pool &pool, const Layout &layout, std::uint64_t rank, Range &&mine);
    /* Releases the object before this ends; spans of its payload must not be read afterwards. Does not block. */
    void release() noexcept { handle_.reset(); }
    /* Ends the use without being done: the group or requirement delivers the object again. As jct_object_give_back. */
    void give_back() { detail::check(jct_object_give_back(handle_.release())); }
    /* Whether an object is held. */
    explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
    /* The handle of C, which this object keeps. */
    jct_object_t *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<jct_object_t, jct_object_release> handle_;
};

/* What Follow::next returns: its kind is JCT_OBJECT, JCT_LIVE, JCT_GAP or JCT_OVER. */
struct Item {
    int kind = 0;
    Object object;
};

/* What was missed by a follow. */
struct Gap {
    std::uint64_t objects = 0;
    std::string reason;
};

/* A follow: a stream of objects. */
class Follow {
public:
    explicit Follow(jct_follow_t *handle) noexcept : handle_(handle) {}
    /* Takes the next item. Blocks for at most `timeout` seconds; throws JCT_TIMEOUT where none has arrived. */
    Item next(double timeout = forever) {
        jct_object_t *object;
        Item item;
        detail::check(jct_follow_next(get(), timeout, &object, &item.kind));
        item.object = Object(object);
        return item;
    }
    /* Takes the next object; skips JCT_LIVE and JCT_GAP. Holds none where the follow has ended. The timeout is that of
     * each wait. */
    Object next_object(double timeout = forever) {
        for (;;) {
            Item item = next(timeout);
            if (item.kind == JCT_OBJECT || item.kind == JCT_OVER)
                return std::move(item.object);
        }
    }
    /* Describes the last gap. As jct_follow_gap. */
    Gap gap() const {
        Gap gap;
        const char *reason;
        detail::check(jct_follow_gap(get(), &gap.objects, &reason));
        gap.reason = reason;
        return gap;
    }
    /* Returns the text with which a later follow continues. As jct_follow_cursor. */
    std::string cursor() { return detail::text_or_empty(jct_follow_cursor(get())); }
    /* Ends the follow. Blocks for one round trip at most. */
    void close() noexcept { handle_.reset(); }
    /* The handle of C, which this object keeps. */
    jct_follow_t *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<jct_follow_t, jct_follow_close> handle_;
};

/* A subscription to the events of a pool, with the event that was taken last. */
class Subscription {
public:
    explicit Subscription(jct_subscription_t *handle) noexcept : handle_(handle) {}
    /* Takes the next event; returns its kind, such as "offered", empty where the subscription has ended. Blocks for at
     * most `timeout` seconds; throws JCT_TIMEOUT where none has arrived. As jct_subscription_next. */
    std::string next(double timeout = forever) {
        const char *kind;
        detail::check(jct_subscription_next(get(), timeout, &kind));
        return detail::text_or_empty(kind);
    }
    /* Returns a text of the event: "key", "client", "reason", ...; empty where it has none. As jct_event_text. */
    std::string text(const std::string &field) const {
        return detail::text_or_empty(jct_event_text(get(), field.c_str()));
    }
    /* Returns the value of an attribute of the event's object; empty where there is none. As jct_event_get. */
    std::string value(const std::string &name) const {
        return detail::text_or_empty(jct_event_get(get(), name.c_str()));
    }
    /* Returns a number of the event: "bytes", "version", "pid", ... As jct_event_number. */
    std::uint64_t number(const std::string &field) const {
        std::uint64_t number;
        detail::check(jct_event_number(get(), field.c_str(), &number));
        return number;
    }
    /* Ends the subscription. Blocks for one round trip at most. */
    void close() noexcept { handle_.reset(); }
    /* The handle of C, which this object keeps. */
    jct_subscription_t *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<jct_subscription_t, jct_subscription_close> handle_;
};

/* A demand whose answer is awaited later. */
class Pending {
public:
    explicit Pending(jct_pending_t *handle) noexcept : handle_(handle) {}
    /* Takes the object. Blocks for at most `timeout` seconds; after JCT_TIMEOUT it may be called again. */
    Object take(double timeout = forever) {
        jct_object_t *object;
        detail::check(jct_pending_take(get(), timeout, &object));
        return Object(object);
    }
    /* The handle of C, which this object keeps. */
    jct_pending_t *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<jct_pending_t, jct_pending_free> handle_;
};

/* A requirement: every object that matches stays until it was received through it and released. */
class Requirement {
public:
    explicit Requirement(jct_requirement_t *handle) noexcept : handle_(handle) {}
    /* Follows what it is owed, oldest first. As jct_requirement_follow. */
    Follow follow(const std::string &options = "") const {
        jct_follow_t *follow;
        detail::check(jct_requirement_follow(get(), options.c_str(), &follow));
        return Follow(follow);
    }
    /* Ends it, also one that has a name. Blocks for one round trip. */
    void retract() { detail::check(jct_requirement_retract(handle_.release())); }
    /* The handle of C, which this object keeps. */
    jct_requirement_t *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<jct_requirement_t, jct_requirement_free> handle_;
};

/* A list of objects, read page by page. */
class List {
public:
    explicit List(jct_list_t *handle) noexcept : handle_(handle) {}
    /* Takes the next object; false at the end. As jct_list_next. */
    bool next() {
        detail::check(jct_list_next(handle_.get(), &key_, &bytes_));
        return key_ != nullptr;
    }
    /* Returns the canonical key of that object. Valid until `next` is called. */
    const char *key() const noexcept { return detail::text_or_empty(key_); }
    /* Returns the length of its payload. */
    std::uint64_t bytes() const noexcept { return bytes_; }
    /* Returns the canonical value of an attribute; nullptr where it has none. Valid as the key. */
    const char *get(const std::string &name) const noexcept { return jct_list_get(handle_.get(), name.c_str()); }

private:
    detail::Handle<jct_list_t, jct_list_close> handle_;
    const char *key_ = nullptr;
    std::uint64_t bytes_ = 0;
};

/* Memory in the pool for one payload of elements of a type, until it is offered. */
template <typename T> class Allocation {
public:
    Allocation(jct_allocation_t *handle, std::size_t size) noexcept : handle_(handle), size_(size) {}
    /* Returns the memory, whose contents are undefined until they are written. As jct_allocation_data. */
    Span<T> data() const noexcept {
        return handle_ ? Span<T>(static_cast<T *>(jct_allocation_data(handle_.get(), nullptr)), size_) : Span<T>();
    }
    /* Copies a range of elements into the memory, from element `at` on. As jct_allocation_write. */
    template <typename Range> void write(const Range &elements, std::size_t at = 0) const {
        detail::check(
            jct_allocation_write(handle_.get(), at * sizeof(T), elements.data(), detail::bytes_of(elements)));
    }
    /* Offers the memory as an object. Consumes this, also where it throws. As jct_allocation_offer. */
    void offer(const Attributes &attributes, const std::string &options = "") {
        detail::check(jct_allocation_offer(handle_.release(), attributes.get(), options.c_str()));
    }
    /* Takes the handle of C, which the caller then consumes. */
    jct_allocation_t *release() noexcept { return handle_.release(); }

private:
    detail::Handle<jct_allocation_t, jct_allocation_free> handle_;
    std::size_t size_;
};

class Pipeline;

/* A bundle that this program has open: what is offered into it becomes visible at one moment, or not at all. */
class Bundle {
public:
    explicit Bundle(jct_bundle_t *handle) noexcept : handle_(handle) {}
    /* Offers a copy of a range of elements; returns when it is staged. As jct_bundle_offer. */
    template <typename Range>
    void offer(const Attributes &attributes, const Range &payload, const std::string &options = "") const {
        detail::check(jct_bundle_offer(get(), attributes.get(), payload.data(), detail::bytes_of(payload),
                                       options.c_str()));
    }
    /* Offers the piece of an array that `rank` has in `layout`; the bundle has a path. As jct_bundle_offer_piece. */
    template <typename Range>
    void offer_piece(const Layout &layout, std::uint64_t rank, const Attributes &attributes, const Range &mine,
                     const std::string &options = "") const;
    /* Allocates memory for `size` elements of a member; `stage` offers it. As jct_bundle_allocate. */
    template <typename T> Allocation<T> allocate(std::size_t size) const {
        jct_allocation_t *allocation;
        detail::check(jct_bundle_allocate(get(), size * sizeof(T), &allocation, nullptr));
        return {allocation, size};
    }
    /* Stages the memory of an allocation of the same pool. As jct_allocation_stage. */
    template <typename T>
    void stage(Allocation<T> allocation, const Attributes &attributes, const std::string &options = "") const {
        detail::check(jct_allocation_stage(allocation.release(), get(), attributes.get(), options.c_str()));
    }
    /* Opens a pipeline of offers into the bundle; flush it before `seal`. As jct_bundle_pipeline. */
    Pipeline pipeline(const std::string &options = "") const;
    /* Makes all members visible at one moment; returns their number. As jct_bundle_seal. */
    std::uint64_t seal() const {
        std::uint64_t objects;
        detail::check(jct_bundle_seal(get(), &objects));
        return objects;
    }
    /* Waits until it is visible; returns the number of objects. Blocks for at most `timeout` seconds. */
    std::uint64_t wait(double timeout = forever) const {
        std::uint64_t objects;
        detail::check(jct_bundle_wait(get(), timeout, &objects));
        return objects;
    }
    /* Aborts it for all producers. Blocks for one round trip. */
    void abort() const { detail::check(jct_bundle_abort(get())); }
    /* The handle of C, which this object keeps. */
    jct_bundle_t *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<jct_bundle_t, jct_bundle_close> handle_;
};

/* A block of indices of an array, which a rank stores. */
struct Block {
    std::uint64_t rank = 0;
    std::vector<std::uint64_t> start, count;
};

/* How an array is distributed over ranks, and stored in the memory of each. Dimensions and indices count from 0. */
class Layout {
public:
    /* Reads a layout, such as "shape=360x180 grid=4x1". Does not block. As jct_layout_parse. */
    explicit Layout(const std::string &text) {
        jct_layout_t *layout;
        detail::check(jct_layout_parse(text.c_str(), &layout));
        handle_ = Handle(layout);
    }
    /* Makes a layout of blocks. `order` is JCT_ORDER_C or JCT_ORDER_F. As jct_layout_blocks. */
    Layout(const std::vector<std::uint64_t> &shape, const std::vector<Block> &blocks, int order = JCT_ORDER_C) {
        std::vector<std::uint64_t> ranks, starts, counts;
        for (const Block &block : blocks) {
            if (block.start.size() != shape.size() || block.count.size() != shape.size())
                throw Error(JCT_INVALID_ARGUMENT, "layout", "a block has not as many numbers as dimensions");
            ranks.push_back(block.rank);
            starts.insert(starts.end(), block.start.begin(), block.start.end());
            counts.insert(counts.end(), block.count.begin(), block.count.end());
        }
        jct_layout_t *layout;
        detail::check(jct_layout_blocks(shape.size(), shape.data(), ranks.size(), ranks.data(), starts.data(),
                                        counts.data(), order, &layout));
        handle_ = Handle(layout);
    }
    /* Returns the number of ranks. */
    std::uint64_t ranks() const { return number(jct_layout_ranks); }
    /* Returns the number of elements that the memory of a rank has room for. */
    std::uint64_t elements(std::uint64_t rank) const { return number(jct_layout_elements, rank); }
    /* Returns how many indices a rank has in a dimension. */
    std::uint64_t extent(std::uint64_t rank, std::size_t dimension) const {
        return number(jct_layout_extent, rank, dimension);
    }
    /* Returns the first index of the whole array that a rank has in a dimension. As jct_layout_start. */
    std::uint64_t start(std::uint64_t rank, std::size_t dimension) const {
        return number(jct_layout_start, rank, dimension);
    }
    /* The handle of C, which this object keeps. */
    jct_layout_t *get() const noexcept { return handle_.get(); }

private:
    using Handle = detail::Handle<jct_layout_t, jct_layout_free>;
    template <typename Function, typename... Arguments>
    std::uint64_t number(Function function, Arguments... arguments) const {
        std::uint64_t result;
        detail::check(function(get(), arguments..., &result));
        return result;
    }
    Handle handle_;
};

template <typename Range>
void Bundle::offer_piece(const Layout &layout, std::uint64_t rank, const Attributes &attributes, const Range &mine,
                         const std::string &options) const {
    detail::check(jct_bundle_offer_piece(get(), layout.get(), rank, type_of<detail::ElementOf<const Range>>(),
                                         attributes.get(), mine.data(), detail::bytes_of(mine), options.c_str()));
}

/* Weights from one grid to another. */
class Weights {
public:
    /* Reads a file that `junctura weights convert` has made. Blocks until the file is read. As jct_weights_open. */
    explicit Weights(const std::string &path, const std::string &options = "") {
        jct_weights_t *weights;
        detail::check(jct_weights_open(path.c_str(), options.c_str(), &weights));
        handle_ = Handle(weights);
    }
    /* Returns the number of points of the source grid. */
    std::uint64_t sources() const { return points(true); }
    /* Returns the number of points of the target grid. */
    std::uint64_t targets() const { return points(false); }
    /* Regrids a field of float or double. As jct_weights_apply. */
    template <typename Source, typename Target>
    void apply(const Source &source, Target &&target, const std::string &options = "") const {
        using Element = detail::ElementOf<Target>;
        static_assert(std::is_same_v<std::remove_const_t<detail::ElementOf<const Source>>, Element>,
                      "the same type of elements");
        detail::check(jct_weights_apply(get(), type_of<Element>(), source.data(), detail::bytes_of(source),
                                        target.data(), detail::bytes_of(target), options.c_str()));
    }
    /* The handle of C, which this object keeps. */
    jct_weights_t *get() const noexcept { return handle_.get(); }

private:
    using Handle = detail::Handle<jct_weights_t, jct_weights_close>;
    std::uint64_t points(bool of_source) const {
        std::uint64_t sources, targets;
        detail::check(jct_weights_points(get(), &sources, &targets));
        return of_source ? sources : targets;
    }
    Handle handle_;
};

/* The exchange of an array of elements of a type that is repeated, such as with every time step. */
template <typename T> class Exchange {
public:
    explicit Exchange(jct_exchange_t *handle) noexcept : handle_(handle) {}
    /* Offers the rank's piece of the array that has the common attributes and these. As jct_exchange_put. */
    template <typename Range> void put(const Attributes &attributes, const Range &mine) const {
        using Element = std::remove_const_t<detail::ElementOf<const Range>>;
        static_assert(std::is_same_v<Element, T>, "elements of the exchange's type");
        detail::check(jct_exchange_put(handle_.get(), attributes.get(), mine.data(), detail::bytes_of(mine)));
    }
    /* Receives the rank's part of the array that has the common attributes and these. Blocks until all pieces are
     * offered, for at most `timeout` seconds. As jct_exchange_get. */
    template <typename Range> void get(const Attributes &attributes, Range &&mine, double timeout = forever) const {
        static_assert(std::is_same_v<detail::ElementOf<Range>, T>, "elements of the exchange's type");
        detail::check(jct_exchange_get(handle_.get(), attributes.get(), timeout, mine.data(), detail::bytes_of(mine)));
    }

private:
    detail::Handle<jct_exchange_t, jct_exchange_close> handle_;
};

/* Offers that are sent and not awaited one by one. */
class Pipeline {
public:
    explicit Pipeline(jct_pipeline_t *handle) noexcept : handle_(handle) {}
    /* Offers a copy of a range of elements. As jct_pipeline_offer. */
    template <typename Range>
    void offer(const Attributes &attributes, const Range &payload, const std::string &options = "") {
        detail::check(jct_pipeline_offer(handle_.get(), attributes.get(), payload.data(), detail::bytes_of(payload),
                                         options.c_str()));
    }
    /* Offers the memory of an allocation. As jct_pipeline_offer_allocation. */
    template <typename T>
    void offer(Allocation<T> allocation, const Attributes &attributes, const std::string &options = "") {
        detail::check(jct_pipeline_offer_allocation(handle_.get(), allocation.release(), attributes.get(),
                                                    options.c_str()));
    }
    /* Sends the offers that were gathered, and does not wait for answers. */
    void push() { detail::check(jct_pipeline_push(handle_.get())); }
    /* Waits until every offer is answered; throws the first failure that no call has thrown. */
    void flush() { detail::check(jct_pipeline_flush(handle_.get())); }

private:
    detail::Handle<jct_pipeline_t, jct_pipeline_close> handle_;
};

inline Pipeline Bundle::pipeline(const std::string &options) const {
    jct_pipeline_t *pipeline;
    detail::check(jct_bundle_pipeline(get(), options.c_str(), &pipeline));
    return Pipeline(pipeline);
}

/* A pool that this program has open. Any number of threads may use it at the same time. */
class Pool {
public:
    /* Opens a pool; without a URL that of the environment variable JUNCTURA_POOL, else a private one. Blocks until the
     * server has answered. As jct_pool_open. */
    explicit Pool(const std::string &url = "", const std::string &options = "") {
        jct_pool_t *pool;
        detail::check(jct_pool_open(url.c_str(), options.c_str(), &pool));
        handle_ = Handle(pool);
    }
    /* Closes it. Objects that are held stay readable. No other thread may use it during the call. */
    void close() noexcept { handle_.reset(); }
    /* Returns when every earlier call is in effect. As jct_pool_sync. */
    void sync(double timeout = forever) const { detail::check(jct_pool_sync(get(), timeout)); }
    /* States what this client works on, for people who look at the pool: "step=36, of=240". As jct_pool_note. */
    void note(const std::string &text) const { detail::check(jct_pool_note(get(), text.c_str())); }
    /* Returns the counters of the server as a JSON text. Blocks for one round trip. As jct_pool_stat. */
    std::string stat() const {
        char *json;
        detail::check(jct_pool_stat(get(), &json));
        std::string copy(json);
        jct_free(json);
        return copy;
    }
    /* Explains a selector, or the text of a key, as a JSON text. Blocks for some round trips. As jct_pool_explain. */
    std::string explain(const std::string &selector) const {
        char *json;
        detail::check(jct_pool_explain(get(), selector.c_str(), &json));
        std::string copy(json);
        jct_free(json);
        return copy;
    }
    /* Returns the URL, also of a private pool. */
    std::string url() const { return detail::text_or_empty(jct_pool_url(get())); }
    /* Returns a file descriptor for poll. As jct_pool_descriptor. */
    int descriptor() const {
        int descriptor;
        detail::check(jct_pool_descriptor(get(), &descriptor));
        return descriptor;
    }

    /* Offers a copy of a range of elements (std::vector, std::string, Span); returns when the object is visible.
     * Blocks for one round trip, and while the pool has no memory. As jct_offer. */
    template <typename Range>
    void offer(const Attributes &attributes, const Range &payload, const std::string &options = "") const {
        detail::check(jct_offer(get(), attributes.get(), payload.data(), detail::bytes_of(payload), options.c_str()));
    }
    /* Allocates memory for `size` elements, which is filled in place and offered without a copy. As jct_allocate. */
    template <typename T> Allocation<T> allocate(std::size_t size) const {
        jct_allocation_t *allocation;
        if (size > SIZE_MAX / sizeof(T))
            throw Error(JCT_INVALID_ARGUMENT, "size", "more elements than memory has");
        detail::check(jct_allocate(get(), size * sizeof(T), &allocation, nullptr));
        return {allocation, size};
    }
    /* Opens a pipeline. As jct_pipeline_open. */
    Pipeline pipeline(const std::string &options = "") const {
        jct_pipeline_t *pipeline;
        detail::check(jct_pipeline_open(get(), options.c_str(), &pipeline));
        return Pipeline(pipeline);
    }
    /* Counts the readers that want an object with these attributes. As jct_wanted. */
    std::uint64_t wanted(const Attributes &attributes, const std::string &options = "") const {
        std::uint64_t readers;
        detail::check(jct_wanted(get(), attributes.get(), options.c_str(), &readers));
        return readers;
    }
    /* Removes all versions of a key; returns their number. As jct_withdraw. */
    std::uint64_t withdraw(const Attributes &key, const std::string &options = "", double timeout = forever) const {
        std::uint64_t count;
        detail::check(jct_withdraw(get(), key.get(), options.c_str(), timeout, &count));
        return count;
    }
    /* Removes every object that matches a selector; returns their number. As jct_withdraw_all. */
    std::uint64_t withdraw_all(const std::string &selector, const std::string &options = "",
                               double timeout = forever) const {
        std::uint64_t count;
        detail::check(jct_withdraw_all(get(), selector.c_str(), options.c_str(), timeout, &count));
        return count;
    }

    /* Receives the newest object that matches a selector. Blocks for at most `timeout` seconds. As jct_demand. */
    Object demand(const std::string &selector, double timeout = forever, const std::string &options = "") const {
        jct_object_t *object;
        detail::check(jct_demand(get(), selector.c_str(), options.c_str(), timeout, &object));
        return Object(object);
    }
    /* Receives the object whose key has exactly these attributes. As jct_demand_key. */
    Object demand_key(const Attributes &key, double timeout = forever, const std::string &options = "") const {
        jct_object_t *object;
        detail::check(jct_demand_key(get(), key.get(), options.c_str(), timeout, &object));
        return Object(object);
    }
    /* Begins a demand and does not block; `timeout` is that of the demand. As jct_begin_demand. */
    Pending begin_demand(const std::string &selector, double timeout = forever,
                         const std::string &options = "") const {
        jct_pending_t *pending;
        detail::check(jct_begin_demand(get(), selector.c_str(), options.c_str(), timeout, &pending));
        return Pending(pending);
    }
    /* Follows every object that matches a selector. As jct_follow. */
    Follow follow(const std::string &selector, const std::string &options = "") const {
        jct_follow_t *follow;
        detail::check(jct_follow(get(), selector.c_str(), options.c_str(), &follow));
        return Follow(follow);
    }
    /* Follows as one more member of a consumer group. As jct_join. */
    Follow join(const std::string &group, const std::string &options = "") const {
        jct_follow_t *follow;
        detail::check(jct_join(get(), group.c_str(), options.c_str(), &follow));
        return Follow(follow);
    }
    /* Subscribes to events of objects that match a selector, of clients, requirements and bundles. As jct_subscribe. */
    Subscription subscribe(const std::string &selector = "", const std::string &options = "") const {
        jct_subscription_t *subscription;
        detail::check(jct_subscribe(get(), selector.c_str(), options.c_str(), &subscription));
        return Subscription(subscription);
    }
    /* Requires every object that matches a selector, from what is visible now on. As jct_require. */
    Requirement require(const std::string &selector, const std::string &options = "") const {
        jct_requirement_t *requirement;
        detail::check(jct_require(get(), selector.c_str(), options.c_str(), &requirement));
        return Requirement(requirement);
    }
    /* Ends the requirement or group of a name; returns how many objects it was still owed. As jct_retract. */
    std::uint64_t retract(const std::string &name) const {
        std::uint64_t owed;
        detail::check(jct_retract(get(), name.c_str(), &owed));
        return owed;
    }
    /* Lists the objects that match a selector, in the order of their keys. As jct_list. */
    List list(const std::string &selector = "", const std::string &options = "") const {
        jct_list_t *list;
        detail::check(jct_list(get(), selector.c_str(), options.c_str(), &list));
        return List(list);
    }

    /* Opens a bundle that is this program's alone. As jct_bundle_open. */
    Bundle bundle() const {
        jct_bundle_t *bundle;
        detail::check(jct_bundle_open(get(), nullptr, nullptr, nullptr, &bundle));
        return Bundle(bundle);
    }
    /* Opens a bundle that producers share by its path. As jct_bundle_open. */
    Bundle bundle(const std::string &path, const std::string &options = "", const Attributes &common = {}) const {
        jct_bundle_t *bundle;
        detail::check(jct_bundle_open(get(), path.c_str(), common.get(), options.c_str(), &bundle));
        return Bundle(bundle);
    }

    /* Offers the piece of an array that `rank` has in `layout`. As jct_offer_piece. */
    template <typename Range>
    void offer_piece(const Layout &layout, std::uint64_t rank, const Attributes &attributes, const Range &mine,
                     const std::string &options = "") const {
        detail::check(jct_offer_piece(get(), layout.get(), rank, type_of<detail::ElementOf<const Range>>(),
                                      attributes.get(), mine.data(), detail::bytes_of(mine), options.c_str()));
    }
    /* Receives the part of an array that `rank` has in `layout`, in any layout of its producers. Blocks until all pieces
     * are offered, for at most `timeout` seconds. As jct_demand_array. */
    template <typename Range>
    void demand_array(const Attributes &key, const Layout &layout, std::uint64_t rank, Range &&mine,
                      double timeout = forever, const std::string &options = "") const {
        using Element = detail::ElementOf<Range>;
        static_assert(!std::is_const_v<Element>, "memory that can be written");
        detail::check(jct_demand_array(get(), key.get(), layout.get(), rank, type_of<Element>(), mine.data(),
                                       detail::bytes_of(mine), options.c_str(), timeout));
    }
    /* As above, into a new vector. */
    template <typename T>
    std::vector<T> demand_array(const Attributes &key, const Layout &layout, std::uint64_t rank,
                                double timeout = forever, const std::string &options = "") const {
        std::vector<T> mine(static_cast<std::size_t>(layout.elements(rank)));
        demand_array(key, layout, rank, mine, timeout, options);
        return mine;
    }
    /* Opens an exchange of elements of a type, for `rank` in `layout`. Does not block. As jct_exchange_open. */
    template <typename T>
    Exchange<T> exchange(const Layout &layout, std::uint64_t rank, const Attributes &common = {},
                         const std::string &options = "") const {
        jct_exchange_t *exchange;
        detail::check(jct_exchange_open(get(), layout.get(), rank, type_of<T>(), common.get(), options.c_str(),
                                        &exchange));
        return Exchange<T>(exchange);
    }
    /* Opens the source's side of an exchange between two grids, for `rank` in `layout`. As jct_exchange_open_source. */
    template <typename T>
    Exchange<T> exchange_source(const Weights &weights, const Layout &layout, std::uint64_t rank,
                                const Attributes &common = {}, const std::string &options = "") const {
        jct_exchange_t *exchange;
        detail::check(jct_exchange_open_source(get(), weights.get(), layout.get(), rank, type_of<T>(), common.get(),
                                               options.c_str(), &exchange));
        return Exchange<T>(exchange);
    }
    /* Opens the target's side, for `rank` in `target`; `source` is the layout of the other side. As
     * jct_exchange_open_target. */
    template <typename T>
    Exchange<T> exchange_target(const Weights &weights, const Layout &source, const Layout &target, std::uint64_t rank,
                                const Attributes &common = {}, const std::string &options = "") const {
        jct_exchange_t *exchange;
        detail::check(jct_exchange_open_target(get(), weights.get(), source.get(), target.get(), rank, type_of<T>(),
                                               common.get(), options.c_str(), &exchange));
        return Exchange<T>(exchange);
    }
    /* The handle of C, which this object keeps. */
    jct_pool_t *get() const noexcept { return handle_.get(); }

private:
    using Handle = detail::Handle<jct_pool_t, jct_pool_close>;
    Handle handle_;
};

template <typename Range>
void Object::take(const Pool &pool, const Layout &layout, std::uint64_t rank, Range &&mine) {
    using Element = detail::ElementOf<Range>;
    static_assert(!std::is_const_v<Element>, "memory that can be written");
    detail::check(jct_object_take(pool.get(), get(), layout.get(), rank, type_of<Element>(), mine.data(),
                                  detail::bytes_of(mine)));
}

} // namespace junctura

#endif // JUNCTURA_HPP
