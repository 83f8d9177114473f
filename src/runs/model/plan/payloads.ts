import { AppError } from "../../../kernel/errors.ts";
import type { Json, JsonObject } from "../../../kernel/lifecycle.ts";

const REBOOT_MODES = ["bmc", "in_band"] as const;
export type RebootMode = (typeof REBOOT_MODES)[number];
const NETBOOT_MODES = ["PXE", "HTTP", "DISK"] as const;
export type NetbootMode = (typeof NETBOOT_MODES)[number];

/** What each kind of step is told, once parsed. Plain JSON, since it is frozen into runs. */
export interface Payloads {
  readonly ssh: { readonly script_ref: string; readonly args: Readonly<Record<string, string>> };
  readonly reboot: { readonly force: boolean; readonly mode: RebootMode };
  /** `profile` is empty for the default of the image. */
  readonly netboot: { readonly profile: string; readonly mode: NetbootMode };
  /** `cloud_init_ref` is empty for none. */
  readonly repave: { readonly image_ref: string; readonly cloud_init_ref: string };
  /** Empty for the machine's own target cluster. */
  readonly join: { readonly cluster_ref: string };
  readonly verify: { readonly cluster_ref: string };
  readonly net: { readonly params: Readonly<Record<string, string>> };
  readonly rma: { readonly reason: string };
}
/** The word of a kind in plans, as JSON, YAML and the contract's `oneof` spell it. */
export type StepKind = keyof Payloads;

/**
 * Takes a payload as plans spell it; `field` is where it stands, for the answer when it makes no sense. With the step's timeout
 * where that is known, since what it is told may have to fit into it.
 */
export type ParsePayload<P> = (payload: JsonObject, field: string, timeoutSeconds?: number) => P;

export const PAYLOAD_LIMITS = { entries: 64, valueLength: 16_384, textLength: 512 } as const;

/** Keys become environment variables of scripts. */
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/**
 * What shells run or obey, and loaders load, before a script has said anything: a value here would be more than a value. Those of MILLWRIGHT_
 * are how we tell our own scripts apart.
 */
const RESERVED = /^(MILLWRIGHT_.*|LD_(PRELOAD|AUDIT)|BASH_ENV|BASHOPTS|SHELLOPTS|PS4|IFS)$/;

/** The first of these variables that no script may be given, and why. */
export function findReserved(args: Readonly<Record<string, string>>): { name: string; why: string } | undefined {
  const name = Object.keys(args).find((each) => RESERVED.test(each));
  if (name === undefined) return undefined;
  const ours = name.startsWith("MILLWRIGHT_");
  return {
    name,
    why: ours ? "names that begin with MILLWRIGHT_ are ours" : "is what shells and loaders obey, not scripts",
  };
}

export const parsePayload: { readonly [K in StepKind]: ParsePayload<Payloads[K]> } = {
  ssh(payload, field) {
    const read = new PayloadReader(payload, field, ["script_ref", "args"]);
    const scriptRef = read.requiredText("script_ref");
    const args = read.textByName("args", VARIABLE);
    const reserved = findReserved(args);
    if (reserved) throw read.refuse(`args.${reserved.name}`, `${reserved.why}; choose another name`);
    return { script_ref: scriptRef, args };
  },
  reboot(payload, field) {
    const read = new PayloadReader(payload, field, ["force", "mode"]);
    return { force: read.flag("force"), mode: read.word("mode", REBOOT_MODES) };
  },
  netboot(payload, field) {
    const read = new PayloadReader(payload, field, ["profile", "mode"]);
    return { profile: read.text("profile"), mode: read.word("mode", NETBOOT_MODES) };
  },
  repave(payload, field) {
    const read = new PayloadReader(payload, field, ["image_ref", "cloud_init_ref", "image"]);
    const image = read.either("image_ref", read.text("image_ref"), "image", read.text("image"));
    if (image === "") throw read.refuse("image_ref", "is required: an image that the server has");
    return { image_ref: image, cloud_init_ref: read.text("cloud_init_ref") };
  },
  join: parseCluster,
  verify: parseCluster,
  net(payload, field) {
    const read = new PayloadReader(payload, field, ["params"]);
    const params = read.textByName("params", /^[^\s=\0]{1,128}$/);
    if (Object.keys(params).length === 0) throw read.refuse("params", "is required: what to change");
    return { params };
  },
  rma(payload, field) {
    const read = new PayloadReader(payload, field, ["reason"]);
    return { reason: read.text("reason") || "no reason specified" };
  },
};

function parseCluster(payload: JsonObject, field: string): Payloads["join"] {
  const read = new PayloadReader(payload, field, ["target_cluster", "cluster_ref"]);
  const target = read.nested("target_cluster", ["cluster_id", "kubeconfig_secret_ref"]);
  if (target.text("kubeconfig_secret_ref") !== "") {
    throw target.refuse(
      "kubeconfig_secret_ref",
      "is not taken: the server keeps the kubeconfig of each of its clusters",
    );
  }
  const id = target.text("cluster_id");
  return { cluster_ref: read.either("cluster_ref", read.text("cluster_ref"), "target_cluster.cluster_id", id) };
}

/** Reads a payload field by field. What is missing, null or empty is "not given", as in the contract. */
class PayloadReader {
  readonly #payload: JsonObject;
  readonly #field: string;

  constructor(payload: JsonObject, field: string, known: readonly string[]) {
    this.#payload = payload;
    this.#field = field;
    const unknown = Object.keys(payload).find((name) => !known.includes(name));
    if (unknown !== undefined) throw this.refuse(unknown, `is not known; known: ${known.join(", ")}`);
  }

  refuse(name: string, why: string): AppError {
    const field = `${this.#field}.${name}`;
    return new AppError("invalid_argument", `${field}: ${why}`, { field });
  }

  text(name: string): string {
    const value = this.#get(name) ?? "";
    if (typeof value !== "string") throw this.refuse(name, "must be text");
    const { textLength } = PAYLOAD_LIMITS;
    if (value.length > textLength) throw this.refuse(name, `must have at most ${textLength} characters`);
    if (/\p{Cc}/u.test(value)) throw this.refuse(name, "must not contain control characters");
    return value;
  }

  requiredText(name: string): string {
    const value = this.text(name);
    if (value === "") throw this.refuse(name, "is required");
    return value;
  }

  flag(name: string): boolean {
    const value = this.#get(name) ?? false;
    if (typeof value !== "boolean") throw this.refuse(name, "must be true or false");
    return value;
  }

  /** Not given takes the first of the words. */
  word<const W extends string>(name: string, words: readonly [W, ...W[]]): W {
    const value = this.text(name);
    if (value === "") return words[0];
    const word = words.find((each) => each === value);
    if (word === undefined) throw this.refuse(name, `must be one of ${words.join(", ")}, got ${JSON.stringify(value)}`);
    return word;
  }

  textByName(name: string, key: RegExp): Record<string, string> {
    const entries = Object.entries(this.#object(name));
    const { entries: most, valueLength } = PAYLOAD_LIMITS;
    if (entries.length > most) throw this.refuse(name, `must have at most ${most} entries`);
    for (const [each, value] of entries) {
      if (!key.test(each)) throw this.refuse(name, `${JSON.stringify(each.slice(0, 80))} is not a valid name`);
      if (typeof value !== "string") throw this.refuse(`${name}.${each}`, "must be text");
      if (value.length > valueLength)
        throw this.refuse(`${name}.${each}`, `must have at most ${valueLength} characters`);
      if (value.includes("\0")) throw this.refuse(`${name}.${each}`, "must not contain the NUL character");
    }
    return Object.fromEntries(entries) as Record<string, string>;
  }

  nested(name: string, known: readonly string[]): PayloadReader {
    return new PayloadReader(this.#object(name), `${this.#field}.${name}`, known);
  }

  /** Two names for the same thing: one is enough, and both must agree. */
  either(name: string, value: string, otherName: string, other: string): string {
    if (value !== "" && other !== "" && value !== other) {
      throw this.refuse(
        name,
        `says ${JSON.stringify(value)}, but ${otherName} says ${JSON.stringify(other)}; both name the same field, give one of them`,
      );
    }
    return value === "" ? other : value;
  }

  #get(name: string): Json | undefined {
    return Object.hasOwn(this.#payload, name) ? this.#payload[name] : undefined;
  }

  #object(name: string): JsonObject {
    const value = this.#get(name) ?? {};
    if (typeof value !== "object" || Array.isArray(value)) throw this.refuse(name, "must be an object");
    return value as JsonObject;
  }
}
