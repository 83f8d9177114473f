import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { createSecureContext } from "node:tls";
import type { TlsMaterial } from "../../api/transport/listener.ts";
import type { ApiServers } from "../../api/transport/server.ts";
import type { Config } from "../../config.ts";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { StopSequence } from "../stop-sequence.ts";

/** They are read, and not watched: Kubernetes swaps a link somewhere above them, and network file systems tell nobody. */
const EVERY = seconds(5);

interface Paths {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile: string | null;
}

/** The certificate of the listeners, as it is on disk now. A pair that cannot be used never replaces one that can. */
export class TlsFiles {
  readonly #paths: Paths;
  readonly #log: Log;
  readonly #users: ((material: TlsMaterial) => void)[] = [];
  #material: TlsMaterial;
  /** What was refused, so that it is said once; undefined: what is served is what is on disk. */
  #refused: { readonly material: TlsMaterial | null; readonly why: string; said: boolean } | undefined;

  /** @throws AppError invalid_argument that names the file. */
  constructor(paths: Paths, log: Log) {
    this.#paths = paths;
    this.#log = log;
    this.#material = readPair(paths);
    checkPair(this.#material, paths);
  }

  get material(): TlsMaterial {
    return this.#material;
  }

  /** Why the files are not what is served; null when they are. */
  get trouble(): string | null {
    return this.#refused?.said ? this.#refused.why : null;
  }

  /** When the certificate that is served ends, in seconds since 1970. */
  get endsAt(): number {
    return new X509Certificate(this.#material.cert).validToDate.getTime() / 1_000;
  }

  onRenewed(use: (material: TlsMaterial) => void): void {
    this.#users.push(use);
  }

  /**
   * Reads the files again. A pair that cannot be used may be half written: only the second look at the same one tells, unless `now` asks.
   */
  refresh({ now = false } = {}): void {
    let read: TlsMaterial | null = null;
    try {
      read = readPair(this.#paths);
      if (!isSame(read, this.#material)) this.#take(read);
      this.#refused = undefined;
    } catch (error) {
      this.#refuse(read, messageOf(error), now);
    }
  }

  async follow(signal: AbortSignal, every: Duration = EVERY): Promise<void> {
    while (!signal.aborted) {
      await pause(every, undefined, { signal, ref: false }).catch(() => undefined);
      if (!signal.aborted) this.refresh();
    }
  }

  #take(material: TlsMaterial): void {
    checkPair(material, this.#paths);
    this.#material = material;
    for (const use of this.#users) use(material);
    this.#log.info({ until: new Date(this.endsAt * 1_000).toISOString() }, "a new certificate is served");
  }

  #refuse(material: TlsMaterial | null, why: string, now: boolean): void {
    const earlier = this.#refused;
    const isKnown = earlier !== undefined && earlier.why === why && isSame(earlier.material, material);
    if (isKnown && earlier.said && !now) return;
    this.#refused = { material, why, said: isKnown || now };
    if (this.#refused.said)
      this.#log.error({ error: why }, "the certificate files cannot be used; the earlier ones stay");
  }
}

/** Undefined: the listeners speak no TLS. */
export function openTlsFiles({ tls }: Config, log: Log): TlsFiles | undefined {
  const { certFile, keyFile, clientCaFile } = tls;
  return certFile === null || keyFile === null ? undefined : new TlsFiles({ certFile, keyFile, clientCaFile }, log);
}

function readPair({ certFile, keyFile, clientCaFile }: Paths): TlsMaterial {
  return {
    cert: readNamed("tls.cert_file", certFile),
    key: readNamed("tls.key_file", keyFile),
    ...(clientCaFile !== null && { clientCa: readNamed("tls.client_ca_file", clientCaFile) }),
  };
}

function readNamed(setting: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw refusal(`${setting}: ${path} cannot be read: ${messageOf(error)}`, error);
  }
}

function checkPair({ cert, key, clientCa }: TlsMaterial, { certFile, keyFile, clientCaFile }: Paths): void {
  const certificate = named("tls.cert_file", certFile, "certificate", () => new X509Certificate(cert));
  const privateKey = named("tls.key_file", keyFile, "private key", () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey))
    throw refusal(`tls.key_file: the key in ${keyFile} is not that of the certificate in ${certFile} (tls.cert_file)`);
  named("tls.cert_file", certFile, "chain of certificates", () => createSecureContext({ cert, key }));
  if (clientCa !== undefined)
    named("tls.client_ca_file", clientCaFile ?? "", "list of certificates", () => new X509Certificate(clientCa));
}

function named<T>(setting: string, path: string, what: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw refusal(`${setting}: ${path} holds no ${what} in PEM that can be used: ${messageOf(error)}`, error);
  }
}

const refusal = (message: string, cause?: unknown): AppError =>
  new AppError("invalid_argument", message, { next: "millwright config check" }, { cause });

const isSame = (one: TlsMaterial | null, other: TlsMaterial | null): boolean =>
  one === other || (one !== null && other !== null && JSON.stringify(one) === JSON.stringify(other));

/** Has the listeners show what is on disk, until the server stops. */
export function followTls(
  tls: TlsFiles | undefined,
  { api, metrics }: { readonly api: Pick<ApiServers, "renewTls">; readonly metrics: Metrics },
  stops: StopSequence,
): void {
  if (tls === undefined) return;
  tls.onRenewed((material) => api.renewTls(material));
  metrics.collectWith(async () => ({ millwright_certificate_ends_seconds: [{ labels: {}, value: tls.endsAt }] }));
  const stopping = new AbortController();
  const following = tls.follow(stopping.signal);
  stops.add("the certificate files", () => {
    stopping.abort();
    return following;
  });
}
