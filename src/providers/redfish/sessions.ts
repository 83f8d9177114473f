import { LRUCache } from "lru-cache";
import type { BmcTarget, TlsTrust } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure, isKeptOut } from "../../capabilities/device-failure.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { type Duration, minutes, seconds } from "../../kernel/time/duration.ts";
import { bmcFailure } from "../transport/bmc-failure.ts";
import { keyOf, nameOf } from "../transport/bmc-gateway.ts";
import { stopped } from "../transport/bmc-lane.ts";
import { credentialDigest } from "../transport/credential-digest.ts";
import type { Fetched, GatedExchange } from "../transport/gated-exchange.ts";
import type { Answer } from "../transport/http-answer.ts";
import type { Outgoing } from "../transport/http-exchange.ts";
import { isLocalPath, linkAt } from "./resource.ts";

export const SERVICE_ROOT = "/redfish/v1/";

/** What to send so that the BMC knows us. `signsIn`: it is the password itself. */
export interface SignIn {
  readonly headers: Readonly<Record<string, string>>;
  readonly signsIn: boolean;
}

interface Session {
  readonly token: string;
  readonly path: string | undefined;
  readonly credentials: string;
  /** Fingerprint of what was shown by whoever gave the session. */
  readonly certificate: string | undefined;
}

/** What we know of one BMC. `session` is empty while signed out; `collection` is `null` where no sessions are offered. */
interface Known {
  /** As it was told last: its certificate may have been pinned since the first sign-in. */
  place: Omit<BmcTarget, "username" | "password">;
  collection?: string | null;
  /** It offers sessions, and had none to give: until then, on the monotonic clock, it is not asked for one. */
  fullUntil?: number | undefined;
  /** Digests of the credentials that it did not take as Basic meanwhile, each with until when they are not sent so again. */
  readonly takesNoBasic: Map<string, number>;
  session?: Session | undefined;
  signingIn?: Promise<unknown> | undefined;
}

/** So long a BMC that has no session left, or is only starting, is sent the password itself. */
const GOES_WITHOUT: Duration = minutes(1);
/** As rarely as credentials that were rejected are tried: nobody can say that these were not. */
const NO_BASIC_FOR: Duration = minutes(15);
const SIGN_OUT_WITHIN = seconds(2);
const SIGN_OUTS_AT_ONCE = 32;

/** Signs in once per BMC where it offers sessions, since checking a password costs a BMC far more than a token; else Basic. */
export class Sessions {
  readonly #exchange: GatedExchange;
  readonly #known: LRUCache<string, Known>;
  readonly #clock: Clock;
  #closing: Promise<void> | undefined;

  constructor(exchange: GatedExchange, limit: number, clock: Clock = systemClock) {
    this.#exchange = exchange;
    this.#clock = clock;
    this.#known = new LRUCache({ max: limit, disposeAfter: (known) => void this.#signOut(known) });
  }

  async signIn(target: BmcTarget, call: CallContext): Promise<SignIn> {
    const credentials = credentialDigest(target);
    const known = this.#of(target);
    for (;;) {
      if (known.session !== undefined && !isFor(known.session, target.trust, credentials))
        this.#drop(known, known.session);
      if (known.session !== undefined) return { headers: { "x-auth-token": known.session.token }, signsIn: false };
      if (this.#goesWithout(known, credentials)) return { headers: { authorization: basic(target) }, signsIn: true };
      if (known.signingIn !== undefined) {
        // Somebody else's attempt; should it fail, we make our own, under our own lease.
        await settledOrStopped(known.signingIn, call.signal);
        if (call.signal.aborted) throw stopped(nameOf(target), call.signal);
        continue;
      }
      known.signingIn = this.#open(target, known, call, credentials);
      try {
        await known.signingIn;
      } finally {
        known.signingIn = undefined;
      }
    }
  }

  /**
   * Through which all goes that is sent with what `signIn` gave. Where sessions are offered, Basic only stands in for one: a BMC
   * that does not take it may take sessions alone, which says nothing of the credentials. They may be wrong all the same, and
   * nobody counts this rejection: so they are not sent in this way again soon, not even by those who already wait to do so.
   */
  async passBasic<A extends Pick<Answer, "status">>({ target, headers }: Outgoing, send: () => Promise<A>): Promise<A> {
    const known = headers.authorization === undefined ? undefined : this.#known.get(keyOf(target));
    if (typeof known?.collection !== "string") return send();
    const credentials = credentialDigest(target);
    if (!this.#takesNoBasic(known, credentials)) {
      const answer = await send();
      if (answer.status !== 401) return answer;
      known.takesNoBasic.set(credentials, this.#clock.monotonic() + NO_BASIC_FOR);
    }
    throw bmcFailure("busy", target, `${nameOf(target)} has no session to give now, and takes no Basic`);
  }

  /** The BMC no longer accepts what `signIn` gave: expired, or it restarted. */
  rejected(target: BmcTarget, signIn: SignIn): void {
    const known = this.#known.get(keyOf(target));
    // Another request may have signed in anew meanwhile; that session stays.
    if (known?.session !== undefined && known.session.token === signIn.headers["x-auth-token"])
      known.session = undefined;
  }

  /** Gives sessions back: a BMC has few, and keeps those of a vanished client for half an hour. */
  close(): Promise<void> {
    this.#closing ??= this.#signOutEverywhere();
    return this.#closing;
  }

  async #signOutEverywhere(): Promise<void> {
    const all = [...this.#known.values()];
    const open = all.flatMap((known) => (known.session === undefined ? [] : [{ ...known }]));
    // Emptied first: those that are forgotten with a session are signed out by that alone, and once is enough.
    for (const known of all) known.session = undefined;
    this.#known.clear();
    for (let from = 0; from < open.length; from += SIGN_OUTS_AT_ONCE) {
      await Promise.all(open.slice(from, from + SIGN_OUTS_AT_ONCE).map((known) => this.#signOut(known)));
    }
  }

  #of(target: BmcTarget): Known {
    const key = keyOf(target);
    const { address, port, scheme, trust } = target;
    const place = { address, port, scheme, trust };
    const before = this.#known.get(key);
    if (before !== undefined) return Object.assign(before, { place });
    const known: Known = { place, takesNoBasic: new Map() };
    this.#known.set(key, known);
    return known;
  }

  #goesWithout(known: Known, credentials: string): boolean {
    if (known.collection === null) return true;
    return this.#clock.monotonic() < (known.fullUntil ?? 0) && !this.#takesNoBasic(known, credentials);
  }

  #takesNoBasic({ takesNoBasic }: Known, credentials: string): boolean {
    const now = this.#clock.monotonic();
    for (const [digest, until] of takesNoBasic) if (until <= now) takesNoBasic.delete(digest);
    return takesNoBasic.has(credentials);
  }

  async #open(target: BmcTarget, known: Known, call: CallContext, credentials: string): Promise<void> {
    known.collection ??= await this.#findCollection(target, call);
    if (known.collection === null) return;
    try {
      const made = await this.#exchange({
        target,
        call,
        operation: "redfish.sign_in",
        method: "POST",
        path: known.collection,
        headers: {},
        signsIn: true,
        body: { UserName: target.username, Password: target.password },
      });
      known.session = sessionOf(made, credentials);
      if (known.session === undefined) known.collection = null;
    } catch (error) {
      if (!isNoSessions(error)) throw error;
      if (error.status === 503 && this.#takesNoBasic(known, credentials)) throw error;
      if (error.status === 503) known.fullUntil = this.#clock.monotonic() + GOES_WITHOUT;
      else known.collection = null;
    }
  }

  async #findCollection(target: BmcTarget, call: CallContext): Promise<string | null> {
    try {
      // The one resource that is readable without signing in.
      const root = await this.#exchange({
        target,
        call,
        operation: "redfish.read",
        method: "GET",
        path: SERVICE_ROOT,
        headers: {},
        signsIn: false,
      });
      const service = linkAt(root.resource, "SessionService");
      return (
        linkAt(root.resource, "Links", "Sessions") ??
        (service === undefined ? null : `${service.replace(/\/$/, "")}/Sessions`)
      );
    } catch (error) {
      if (isKeptOut(error)) return null;
      throw error;
    }
  }

  #drop(known: Known, session: Session): void {
    known.session = undefined;
    void this.#signOut({ place: known.place, session });
  }

  async #signOut({ place, session }: Pick<Known, "place" | "session">): Promise<void> {
    if (session?.path === undefined) return;
    const trust = trustToSignOut(place.trust, session);
    const target: BmcTarget = { ...place, trust, username: "", password: "" };
    const call: CallContext = {
      signal: AbortSignal.timeout(SIGN_OUT_WITHIN),
      mayTouchDevice: (wanted: Duration) => wanted,
      subject: "sign-out",
    };
    const headers = { "x-auth-token": session.token };
    await this.#exchange({
      target,
      call,
      operation: "redfish.sign_out",
      method: "DELETE",
      path: session.path,
      headers,
      signsIn: false,
    }).catch(() => undefined); // It expires by itself; there is nobody to tell.
  }
}

/**
 * Those who offer no sessions, or have none left (503), still take Basic. A wrong password is no such case: it would be tried
 * twice.
 */
function isNoSessions(error: unknown): error is DeviceFailure {
  if (!(error instanceof DeviceFailure) || error.status === undefined) return false;
  const { family, status } = error;
  if (family === "keeps_out" || family === "forbids") return false;
  return family === "declines" || [404, 501, 503].includes(status ?? 0);
}

/** Another caller's promise must not keep us longer than our own signal allows. */
function settledOrStopped(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      signal.removeEventListener("abort", end);
      resolve();
    };
    if (signal.aborted) return end();
    signal.addEventListener("abort", end, { once: true });
    promise.then(end, end);
  });
}

/** A session is shown to nobody who has another certificate than whoever gave it, though that one is trusted by now. */
const isFor = ({ certificate, credentials }: Session, trust: TlsTrust, wanted: string): boolean =>
  credentials === wanted &&
  (trust.mode !== "pin" || [undefined, certificate].includes(trust.fingerprint256) || certificate === undefined);

/** A session still opens the BMC: where a certificate is pinned, or is to be, it is given back only to whom it came from. */
function trustToSignOut(trust: TlsTrust, { certificate }: Session): TlsTrust {
  if (trust.mode !== "pin" || certificate === undefined) return trust;
  return { mode: "pin", fingerprint256: certificate };
}

function sessionOf(made: Fetched, credentials: string): Session | undefined {
  const { headers, resource, certificateFingerprint: certificate } = made;
  const token = headers["x-auth-token"];
  if (typeof token !== "string" || token === "") return undefined;
  return { token, path: sessionPath(headers.location) ?? linkAt(resource), credentials, certificate };
}

function sessionPath(location: string | string[] | undefined): string | undefined {
  if (typeof location !== "string" || !URL.canParse(location, "https://bmc/")) return undefined;
  const { pathname } = new URL(location, "https://bmc/");
  return isLocalPath(pathname) ? pathname : undefined;
}

const basic = ({ username, password }: BmcTarget): string =>
  `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
