import { totalmem } from "node:os";

export type Settings = Readonly<Record<string, string>>;

const GIB = 1024 ** 3;

/** How our own server runs; on two cores, with Millwright beside it on the same machine. */
export function serverSettings(socketDir: string, memory = totalmem()): Settings {
  const roomy = memory >= 4 * GIB;
  return {
    listen_addresses: "",
    // A list, in which a path with a comma or a blank needs its quotes.
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
    unix_socket_permissions: "0700",
    max_connections: "100",
    // A batch takes an advisory lock on each thing that it touches, all in this shared table.
    max_locks_per_transaction: "256",
    shared_buffers: roomy ? "256MB" : "64MB",
    effective_cache_size: roomy ? "1GB" : "256MB",
    random_page_cost: "1.1",
    jit: "off",
    // Parallel plans help none of our short statements, and fail where a container has a tiny /dev/shm.
    max_parallel_workers_per_gather: "0",
    // Commits are durable. Nobody replicates from this server, so the log need not carry what replicas want.
    fsync: "on",
    synchronous_commit: "on",
    wal_level: "minimal",
    max_wal_senders: "0",
    wal_buffers: "16MB",
    max_wal_size: roomy ? "2GB" : "512MB",
    min_wal_size: "128MB",
    checkpoint_timeout: "10min",
    // The work table changes all its rows over and over: clean up often, in small portions.
    autovacuum_naptime: "10s",
    autovacuum_vacuum_cost_limit: "2000",
    // A forgotten transaction holds back every reader of the journal.
    idle_in_transaction_session_timeout: "60s",
    timezone: "UTC",
    log_timezone: "UTC",
    // A file for each day of the week, overwritten a week later: the log stays bounded by itself.
    logging_collector: "on",
    log_directory: "log",
    log_filename: "postgres-%a.log",
    log_truncate_on_rotation: "on",
    log_rotation_age: "1d",
    log_rotation_size: "0",
    log_line_prefix: "%m [%p] %a ",
    log_min_messages: "warning",
    log_checkpoints: "off",
    log_min_error_statement: "panic", // statements carry values that belong in no log
    log_parameter_max_length_on_error: "0",
    log_error_verbosity: "terse",
  };
}

export const asArguments = (settings: Settings): string[] =>
  Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
