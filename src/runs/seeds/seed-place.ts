import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Where seeds are fetched. The way there cannot be guessed: it is made of the token of one installation, or of one boot, and does not give
 * the token of the installation away. Who knows it reads the seed, so that it is no part of a message, a log line or an event.
 */
const SEEDS_PATH = "/seeds";
const NODE = "node.";
/** What installers post to, to say that they have begun. */
export const PHONE_HOME = "phone-home";
/** The seed as a whole. */
export const SEED_MEDIUM = "seed.iso";
const SEEDED_IMAGE = "install.iso";

/** An image with the seed in it has the image's own name, by which people know it in their BMC. */
export function seededImageName(location: string): string {
  const name = new URL(location).pathname.split("/").at(-1) ?? "";
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.iso$/i.test(name) && name !== SEED_MEDIUM ? name : SEEDED_IMAGE;
}

const digest = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Of an installation whose seed its BMC fetches. */
export const seedKeyOf = (token: string): string => digest(`millwright seed ${token}`);

export const isSeedKey = (key: string, token: string): boolean => {
  const [given, wanted] = [Buffer.from(key), Buffer.from(seedKeyOf(token))];
  return given.length === wanted.length && timingSafeEqual(given, wanted);
};

/** By what a run knows the installer that has begun; nobody finds the seed by it. */
export const installerMark = (token: string): string => digest(seedKeyOf(token));

/** In the receipt of a step: the installer (`installerMark`) that may restart the machine without being booted again. */
export const BOOT_SOURCE_FREE = "bootSourceFreeFor";

/** The directory of a seed, with a slash at its end, as NoCloud wants it. */
export const seedDirectory = (server: string, place: string, key: string): string =>
  `${server.replace(/\/+$/, "")}${SEEDS_PATH}/${place}/${key}/`;

/** In place of a run: a node that fetches its seed itself, with the token of its boot. */
export const placeOfNode = (nodeId: string): string => `${NODE}${nodeId}`;
export const nodeOfPlace = (place: string): string | undefined =>
  place.startsWith(NODE) ? place.slice(NODE.length) : undefined;
