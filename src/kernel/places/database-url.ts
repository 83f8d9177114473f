/** One place where the database may be; the host may be the directory of a Unix socket. */
export interface DatabaseHost {
  readonly host: string;
  readonly port: number;
}

export interface DatabaseTarget {
  /** Names the first host alone. */
  readonly url: string;
  /** Where the primary is looked for; empty: at the one host of the URL, whatever it is. */
  readonly hosts: readonly DatabaseHost[];
}

/** What is said of the server wanted. Others want one that takes no writes, with which nothing can be done. */
const WRITABLE = ["any", "read-write", "primary"];
const ATTRIBUTE = "target_session_attrs";
const USUAL_PORT = 5432;
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(\/[^?#]*)?(?:\?([^#]*))?$/;

/**
 * A URL of PostgreSQL as libpq has it: `postgresql://user@one:5432,two:5432/name`, or `?host=one,two&port=5432` in its query, and
 * `target_session_attrs`. Undefined: it is none, or asks for a server that takes no writes.
 */
export function parseDatabaseUrl(text: string): DatabaseTarget | undefined {
  const [, before = "", authority = "", path = "", queryText = ""] = PARTS.exec(text) ?? [];
  if (before === "") return undefined;
  const query = new URLSearchParams(queryText);
  const wanted = query.get(ATTRIBUTE) ?? "any";
  const named = query.has("host")
    ? pair(query.get("host") ?? "", query.get("port") ?? "")
    : authority.split(",").map((part) => splitPort(part, authority === ""));
  if (!WRITABLE.includes(wanted) || named.some((one) => one === undefined)) return undefined;
  const hosts = named as readonly DatabaseHost[];
  query.delete(ATTRIBUTE);
  if (hosts.length === 1) {
    const url = `${before}${authority}${path}${queryOf(query)}`;
    return isUrl(url) ? { url, hosts: query.has("host") || wanted === "any" ? [] : hosts } : undefined;
  }
  query.delete("host");
  query.delete("port");
  const url = `${before}localhost${path}${queryOf(query)}`;
  return isUrl(url) ? { url, hosts } : undefined;
}

// A blank in a value is `%20` to PostgreSQL's drivers, and `+` a plus.
const queryOf = (query: URLSearchParams): string =>
  query.size === 0 ? "" : `?${query.toString().replaceAll("+", "%20")}`;

/** A database behind a Unix socket has a user and no host (`postgresql://user@/name?host=/run/postgresql`). */
const isUrl = (url: string): boolean => URL.canParse(url.replace(/^([a-z]+:\/\/[^/?#]*@)(?=\/)/, "$1localhost"));

function splitPort(text: string, mayBeEmpty: boolean): DatabaseHost | undefined {
  const [, host = "", port = ""] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]*)(?::(\d+))?$/.exec(text) ?? [];
  return hostOf(host.replace(/^\[|\]$/g, ""), port, mayBeEmpty);
}

/** One port is for all hosts. */
function pair(hosts: string, ports: string): readonly (DatabaseHost | undefined)[] {
  const numbers = ports.split(",");
  return hosts.split(",").map((host, at) => hostOf(host, (numbers.length === 1 ? numbers[0] : numbers[at]) ?? ""));
}

function hostOf(host: string, port: string, mayBeEmpty = false): DatabaseHost | undefined {
  const number = port === "" ? USUAL_PORT : Number(port);
  const isPort = Number.isInteger(number) && number > 0 && number < 65_536;
  return isPort && (host !== "" || mayBeEmpty) ? { host, port: number } : undefined;
}
