import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Facts by their names in the journal, as people call them. What is not here is called by its own name. */
const NAMES: { readonly [fact: string]: string } = {
  powerState: "power",
  bmcFirmware: "BMC firmware",
  capacityWatts: "capacity",
  certificateFingerprint: "certificate",
  powerSupplies: "power supplies",
};
const UNITS: { readonly [fact: string]: string } = { capacityWatts: " W", voltage: " V" };

/** "power on → off, health ok → warning": what was read anew, and what it was before where that is known. */
export function factsText(data: JsonObject): string {
  const { facts, was } = data;
  if (!isObject(facts)) return "";
  const before = isObject(was) ? was : {};
  return Object.entries(facts)
    .map(([name, now]) => factText(name, before[name], now))
    .filter((text) => text !== "")
    .join(", ");
}

/** The node of a machine that is kept out of use while it is in maintenance. */
const cordonText = (now: JsonValue): string =>
  isObject(now) ? `node ${String(now.node)} is to be cordoned` : "its node is in use again";

function factText(fact: string, before: JsonValue | undefined, now: JsonValue): string {
  if (fact === "cordoned") return cordonText(now);
  const name = NAMES[fact] ?? spoken(fact);
  if (Array.isArray(now)) return listText(name, Array.isArray(before) ? before : [], now);
  if (isObject(now)) return `${name} changed`;
  const shown = (value: JsonValue) => (value === null ? "unknown" : `${short(String(value))}${UNITS[fact] ?? ""}`);
  return before === undefined || isObject(before) || Array.isArray(before)
    ? `${name} ${shown(now)}`
    : `${name} ${shown(before)} → ${shown(now)}`;
}

/** Of parts that have names, those that differ and in what. */
function listText(name: string, before: readonly JsonValue[], now: readonly JsonValue[]): string {
  const byName = (list: readonly JsonValue[]) =>
    new Map(list.filter(isObject).map((part) => [String(part.name ?? ""), part]));
  const [old, fresh] = [byName(before), byName(now)];
  if (old.size === 0 || fresh.has("") || old.has("")) return `${name}: ${now.length}`;
  const changes = [...fresh].flatMap(([part, values]) => {
    const earlier = old.get(part);
    if (!earlier) return [`${part} added`];
    return Object.entries(values)
      .filter(([field, value]) => JSON.stringify(earlier[field]) !== JSON.stringify(value))
      .map(([field, value]) => `${part} ${partText(field, earlier[field] ?? null, value)}`);
  });
  const gone = [...old.keys()].filter((part) => !fresh.has(part)).map((part) => `${part} gone`);
  return [...changes, ...gone].join(", ") || `${name} in another order`;
}

function partText(field: string, before: JsonValue, now: JsonValue): string {
  const shown = (value: JsonValue) => (value === null ? "unknown" : short(String(value)));
  if (field === "on") return `${onOff(before)} → ${onOff(now)}`;
  return `${spoken(field)} ${shown(before)} → ${shown(now)}`;
}

const onOff = (value: JsonValue): string => (value === null ? "unknown" : value === true ? "on" : "off");

/** operation_completed, lastError → operation completed, last error. */
export const spoken = (word: string): string =>
  word
    .replace(/(?<=[a-z0-9])(?=[A-Z])/g, " ")
    .replaceAll("_", " ")
    .toLowerCase();

/** Fingerprints and the like are for `show`. */
const short = (text: string): string => (text.length > 40 ? `${text.slice(0, 12)}…` : text);
