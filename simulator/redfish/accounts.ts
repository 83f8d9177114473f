import { randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface AccountPolicy {
  readonly username: string;
  readonly password: string;
  readonly lockout: { readonly failures: number; readonly seconds: number };
}

export interface Session {
  readonly id: string;
  readonly token: string;
  readonly createdAt: number;
  lastUsedAt: number;
}

/** Who a request comes from: nobody known, somebody known, or somebody with a wrong or locked account. */
export type Identity = "anonymous" | "right" | "wrong" | "locked";

export const SESSION_TIMEOUT_SECONDS = 1_800;
export const MOST_SESSIONS = 16;

/**
 * The one account of a management controller, its sessions and its lock.
 *
 * All of it is in memory, as in the controllers themselves: a restart forgets sessions and failures. Times are real time,
 * because clients that guard against being locked out wait in real time.
 */
export class Accounts {
  readonly #policy: AccountPolicy;
  readonly #realNow: () => number;
  readonly #sessions = new Map<string, Session>();
  #failures = 0;
  #lockedUntil = 0;

  constructor(policy: AccountPolicy, realNow: () => number) {
    this.#policy = policy;
    this.#realNow = realNow;
  }

  identify(headers: IncomingHttpHeaders): Identity {
    const token = headers["x-auth-token"];
    if (typeof token === "string") return this.#useSession(token) ? "right" : "wrong";
    const basic = /^Basic\s+(\S+)$/i.exec(headers.authorization ?? "")?.[1];
    if (basic === undefined) return headers.authorization === undefined ? "anonymous" : "wrong";
    const [username = "", ...password] = Buffer.from(basic, "base64").toString("utf8").split(":");
    return this.check(username, password.join(":"));
  }

  /** Counts wrong passwords; while the account is locked, the right one is refused as well. */
  check(username: string, password: string): "right" | "wrong" | "locked" {
    const now = this.#realNow();
    if (now < this.#lockedUntil) return "locked";
    if (same(username, this.#policy.username) && same(password, this.#policy.password)) {
      this.#failures = 0;
      return "right";
    }
    this.#failures += 1;
    if (this.#failures >= this.#policy.lockout.failures) {
      this.#failures = 0;
      this.#lockedUntil = now + this.#policy.lockout.seconds * 1_000;
    }
    return "wrong";
  }

  /** Undefined when there are too many sessions already. */
  openSession(): Session | undefined {
    this.#dropExpired();
    if (this.#sessions.size >= MOST_SESSIONS) return undefined;
    const now = this.#realNow();
    const session: Session = {
      id: randomBytes(5).toString("hex"),
      token: randomBytes(16).toString("hex"),
      createdAt: now,
      lastUsedAt: now,
    };
    this.#sessions.set(session.id, session);
    return session;
  }

  get sessions(): readonly Session[] {
    this.#dropExpired();
    return [...this.#sessions.values()];
  }

  session(id: string): Session | undefined {
    this.#dropExpired();
    return this.#sessions.get(id);
  }

  closeSession(id: string): boolean {
    return this.#sessions.delete(id);
  }

  /** As after a restart of the controller. */
  forget(): void {
    this.#sessions.clear();
    this.#failures = 0;
    this.#lockedUntil = 0;
  }

  #useSession(token: string): boolean {
    this.#dropExpired();
    for (const session of this.#sessions.values()) {
      if (!same(session.token, token)) continue;
      session.lastUsedAt = this.#realNow();
      return true;
    }
    return false;
  }

  #dropExpired(): void {
    const oldest = this.#realNow() - SESSION_TIMEOUT_SECONDS * 1_000;
    for (const session of this.#sessions.values()) if (session.lastUsedAt < oldest) this.#sessions.delete(session.id);
  }
}

function same(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
