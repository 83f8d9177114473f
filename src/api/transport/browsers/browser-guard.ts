import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { AppError } from "../../../kernel/errors.ts";

/** From where browsers may call. */
export interface BrowserRules {
  /** Names that the server has, beside those of loopback: `mw.example`, `*.example` for all below, or `*` for any. */
  readonly hosts: readonly string[];
  /** Origins (`https://mw.example`) that count as the server's own, beside that of the request's host; `*` for any. */
  readonly origins: readonly string[];
  /** The names in the certificate that is served now. */
  readonly certified?: () => readonly string[];
  /** A port for machines: no path is for people, and everything may be called by any name. */
  readonly isForMachines?: boolean;
}

/** Of a request, what the guard reads. */
export interface GuardedRequest {
  readonly method: string;
  /** With or without its query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface BrowserGuard {
  /** Why the request must not be served under the name that it came for; undefined: it may. */
  hostRefusal(request: GuardedRequest): AppError | undefined;
  /** Why the page that sent the request may not; undefined: it may, or no page did. */
  originRefusal(request: GuardedRequest): AppError | undefined;
}

/**
 * Keeps foreign web pages out.
 *
 * A browser runs pages of strangers beside ours, on computers that reach us: it sends their requests with our certificates, and from
 * loopback. Two things give such a page away. Its requests name its own origin; and where it has its own name resolve to our address
 * (DNS rebinding), they come for a host that we are not.
 */
export function createBrowserGuard({
  hosts,
  origins,
  certified = () => [],
  isForMachines = false,
}: BrowserRules): BrowserGuard {
  const names = hosts.map((name) => name.toLowerCase());
  const isServed = (host: string): boolean =>
    isIP(host) !== 0 ||
    isLoopbackName(host) ||
    [...names, ...certified()].some((name) => matchesName(name.toLowerCase(), host));
  const isOwnOrigin = (origin: string, host: string | undefined): boolean =>
    origins.includes("*") || origins.includes(origin) || (host !== undefined && hasHost(origin, host));

  return {
    hostRefusal({ url, headers }) {
      const given = headers.host;
      // Without one there is no browser; and a page that has one is a browser's also where firmware is let pass.
      if (typeof given !== "string" || given === "") return undefined;
      if ((isForMachines || isExcepted(pathOf(url))) && !isOfPage(headers)) return undefined;
      const host = hostOf(given);
      if (host !== undefined && isServed(host)) return undefined;
      return new AppError("permission_denied", `this server is not known as ${quoted(given)}`, {
        next: "add the name to http.allowed_hosts, or call the server by its IP address",
      });
    },
    originRefusal({ method, url, headers }) {
      const origin = textOf(headers.origin);
      const host = textOf(headers.host) ?? textOf(headers[":authority"]);
      const site = textOf(headers["sec-fetch-site"]);
      const isForeign =
        origin === undefined
          ? (site === "cross-site" || site === "same-site") && !origins.includes("*")
          : !isOwnOrigin(origin, host);
      if (!isForeign || (!isForMachines && isNavigation({ method, url, headers }))) return undefined;
      const from = origin === undefined ? "another site" : `origin ${quoted(origin)}`;
      return new AppError("permission_denied", `pages of ${from} may not call this server`, {
        next: "open the server's own pages; where a proxy in front of it changes the Host header, add the origin to http.allowed_origins",
      });
    },
  };
}

/** The names in a server's certificate: a browser that reached us by another name has not accepted it. */
export function namesOfCertificate(pem: string | Buffer): string[] {
  const names = new X509Certificate(pem).subjectAltName ?? "";
  return [...names.matchAll(/(?:^|, )DNS:([^,"]+)/g)].flatMap(([, name]) => (name === undefined ? [] : [name]));
}

/** A page names its origin where it posts, and browsers say that a page reads where they trust the way to the server. */
const isOfPage = (headers: GuardedRequest["headers"]): boolean =>
  headers.origin !== undefined || textOf(headers["sec-fetch-site"]) === "same-origin";

const textOf = (value: string | string[] | undefined): string | undefined =>
  typeof value === "string" ? value : undefined;
const pathOf = (url: string): string => url.split("?", 1)[0] ?? "";
const quoted = (text: string): string => JSON.stringify(text.slice(0, 200));

/** `name:port` or `[address]:port` without the port; undefined for what is neither. */
function hostOf(header: string): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]/@\s]+))(?::\d{1,5})?$/i.exec(header);
  return (match?.[1] ?? match?.[2])?.toLowerCase().replace(/\.$/, "");
}

const isLoopbackName = (host: string): boolean => host === "localhost" || host.endsWith(".localhost");

const matchesName = (name: string, host: string): boolean =>
  name === "*" ||
  name === host ||
  (name.startsWith("*.") && host.endsWith(name.slice(1)) && host.length >= name.length);

/** Whether the origin is that of the host that the request came for; the scheme may differ, as behind a proxy that adds TLS. */
function hasHost(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host: from } = new URL(origin);
  const own = `${protocol}//${host}`;
  return (protocol === "http:" || protocol === "https:") && URL.canParse(own) && new URL(own).host === from;
}

/**
 * Probes, what firmware and installers fetch and report, and the agents of nodes: they call by whatever name their network gives us, are
 * no browsers, and carry no credentials that a browser would add.
 */
const EXCEPTED = [
  /^\/(healthz|readyz)$/,
  /^\/api\/v1\/(boot(\.ipxe|\/.*)?|report)$/,
  /^\/api\/v1\/nodes\/[^/]+\/installation-status$/,
  /^\/(files|firmware|seeds|bmc|internal)\//,
  /^\/grpc\.health\.v1\.Health\//,
];
const isExcepted = (path: string): boolean => EXCEPTED.some((pattern) => pattern.test(path));

/** Where an identity provider sends people back to; some do it by a form. */
const CALLBACK = "/auth/callback";
/** Paths that answer with data, or do something. What is left are documents. */
const NO_DOCUMENT =
  /^\/(api|internal|files|firmware|seeds|bmc|metrics|assets|auth|healthz|readyz)(\/|$)|^\/\w+(\.\w+)+\//;
const DOCUMENTS_BELOW_API = ["/api/v1/docs", "/api/v1/openapi.json"];

/** Whether the path, with or without its query, is one of a page for people, or may be one that the console has. */
export const isDocumentPath = (url: string): boolean =>
  DOCUMENTS_BELOW_API.includes(pathOf(url)) || !NO_DOCUMENT.test(pathOf(url));

/** Somebody follows a link from elsewhere to one of our documents, or comes back from signing in: the page that sent them learns nothing. */
function isNavigation({ method, url, headers }: GuardedRequest): boolean {
  const path = pathOf(url);
  const [mode, dest] = [textOf(headers["sec-fetch-mode"]), textOf(headers["sec-fetch-dest"])];
  if (path === CALLBACK) return mode === undefined || mode === "navigate";
  if (method !== "GET" && method !== "HEAD") return false;
  return isDocumentPath(path) && mode === "navigate" && (dest === undefined || dest === "document");
}
