import type { Random } from "./random.ts";

/** Texts that have broken something somewhere. */
const ODD_TEXTS = [
  ...[
    "",
    " ",
    "\0",
    "a\0b",
    "\n",
    "\ud800",
    "\u202e",
    "\ufeff",
    "ß".repeat(300),
    "x".repeat(5_000),
    "💣",
    "' or 1=1 --",
    '"',
  ],
  ...[
    "%",
    "%00",
    "../../etc/passwd",
    "null",
    "undefined",
    "true",
    "0",
    "-1",
    "1e309",
    "NaN",
    "[object Object]",
    "__proto__",
  ],
  ...[
    "constructor",
    "{}",
    "[",
    "a AND",
    "id=",
    "id=x OR (",
    "state IN (",
    "1.2.3",
    "999999999.9999999999999999999.999999999999999999",
  ],
  ...[
    "0.0.0",
    "2026-13-45T99:99:99Z",
    "9999999h",
    "P1Y",
    "http://",
    "https://user:pass@127.0.0.1:0/",
    "file:///etc/passwd",
    "env:PATH",
  ],
  ...[
    "file:/etc/passwd",
    "vault:a/b#c",
    "::1",
    "256.1.1.1",
    "02:00:00:00:00:zz",
    "-----BEGIN RSA PRIVATE KEY-----",
    "asc,desc",
    "-",
  ],
] as const;

/** What a field of that name wants, so that some requests are good enough to get further. */
const PLAUSIBLE: readonly (readonly [RegExp, (random: Random) => string])[] = [
  [/mac/, (random) => `02:00:00:00:0${random.below(10)}:0${random.below(10)}`],
  [/endpoint|address|_ip$|ip_/, (random) => `10.9.${random.below(4)}.${random.below(250)}`],
  [/url|location/, (random) => `https://files.example/${random.below(5)}`],
  [/role/, (random) => random.pick(["operator", "admin", "viewer"])],
  [/filter/, (random) => random.pick(["id=a", "name=b AND id!=c", "created_at>-1h", "labels.x=y"])],
  [/order_by/, (random) => random.pick(["id", "id desc", "name", "created_at desc"])],
  [
    /kind/,
    (random) => random.pick(["machine", "power_shelf", "run", "rack", "install", "reboot", "switch", "fleet_node"]),
  ],
  [/uuid|_id$|^id$/, (random) => random.pick(["a", "b", "m-1", "00000000-0000-4000-8000-000000000001"])],
  [/json|config/, (random) => random.pick(["{}", "[]", '{"Id":"x","BoardSKUs":[]}', "{"])],
  [/duration|ttl|timeout/, (random) => random.pick(["1s", "5m", "24h"])],
  [/name|serial|request/, (random) => random.pick(["one", "two", "three"])],
];

const ODD_NUMBERS = [0, 1, -1, 2, 100, 1_000, 1_001, 2_147_483_647, -2_147_483_648] as const;

/** Values for fields, and what answers have shown of each: ids that were told are asked for again. */
export class Values {
  /** The share of texts and numbers that are odd. Each request has its own: one of many fields would hardly ever be good otherwise. */
  oddness = 0.25;
  readonly #random: Random;
  readonly #seen = new Map<string, string[]>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** Of an answer: everything in it, by the names of its fields. */
  learn(answer: unknown, name = ""): void {
    if (typeof answer === "string" && answer !== "" && answer.length < 200) this.#keep(name, answer);
    else if (Array.isArray(answer)) for (const each of answer.slice(0, 3)) this.learn(each, name);
    else if (typeof answer === "object" && answer !== null)
      for (const [field, value] of Object.entries(answer)) this.learn(value, field);
  }

  #keep(name: string, text: string): void {
    const kept = this.#seen.get(name) ?? [];
    this.#seen.set(name, [...kept, text].slice(-5));
  }

  text(name: string): string {
    const random = this.#random;
    if (random.chance(this.oddness)) return random.pick(ODD_TEXTS);
    const seen = this.#seen.get(name) ?? this.#seen.get(name.replace(/^.*_id$/, "id")) ?? [];
    if (seen.length > 0 && random.chance(0.6)) return random.pick(seen);
    const plausible = PLAUSIBLE.find(([pattern]) => pattern.test(name));
    return plausible ? plausible[1](random) : random.pick(["x", "a-b", "some text"]);
  }

  int(): number {
    return !this.#random.chance(this.oddness) ? this.#random.below(5) : this.#random.pick(ODD_NUMBERS);
  }

  bigint(): bigint {
    return !this.#random.chance(this.oddness)
      ? BigInt(this.#random.below(5))
      : this.#random.pick([-1n, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n), 253_402_300_800n]);
  }

  double(): number {
    return this.#random.pick([0, 1, -1, 0.5, 1e308, -1e308, Number.NaN, Number.POSITIVE_INFINITY, 5e-324]);
  }
}
