import {
  readsFromMedia,
  SEED_FORMATS,
  SEED_PLACES,
  type SeedFormat,
  type SeedPlace,
} from "../../capabilities/seeds/seed.ts";
import { isPrintable } from "../../kernel/printable.ts";
import {
  findRunOfImage,
  IMAGE_KINDS,
  type ImageRow,
  imageTable,
  insertImage,
  removeImage,
  SUCCESS_PROOFS,
} from "../../store/catalog/images.ts";
import { listWorkflows } from "../../store/install/workflows.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import type { ListPage, ListRequest } from "../call/listing.ts";
import { type Catalog, createEntry, deleteEntry, pageEntries, refusal } from "./entries.ts";

export type { ImageRow } from "../../store/catalog/images.ts";

const IMAGES: Catalog<ImageRow> = {
  kind: "image",
  called: "an image",
  table: imageTable,
  async findUser(tx, name) {
    const run = await findRunOfImage(tx, name);
    return run === undefined ? undefined : { does: `run ${run} installs`, next: `millwright run show ${run}` };
  },
  remove: (_, tx, name) => removeImage(tx, name),
};

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const LONGEST_LOCATION = 2_048;

export interface CreateImage {
  readonly name: string;
  readonly kind: string;
  readonly location: string;
  readonly digest: string;
  /** Empty takes ssh. */
  readonly successProof: string;
  /** Empty, or absent: its installer reads none. */
  readonly seed?: string;
  /** Empty, or absent: on a second medium. */
  readonly seedOn?: string;
}

export async function createImage(deps: ServiceDeps, caller: Caller, input: CreateImage): Promise<ImageRow> {
  const kind = checkWord(input.kind, IMAGE_KINDS, "kind");
  const image = {
    name: checkName(input.name),
    kind,
    location: kind === "netboot" ? input.location : checkLocation(input.location),
    digest: checkDigest(input.digest),
    successProof: checkWord(input.successProof || "ssh", SUCCESS_PROOFS, "success_proof"),
    seed: (input.seed ?? "") === "" ? null : checkWord(input.seed ?? "", SEED_FORMATS, "seed"),
    seedOn: (input.seedOn ?? "") === "" ? null : checkWord(input.seedOn ?? "", SEED_PLACES, "seed_on"),
  };
  if (image.seed !== null) checkSeed(kind, image.seed, image.seedOn);
  if (image.seedOn !== null) checkSeedOn(image, image.seedOn);
  const { name, successProof, seedOn, ...telling } = image;
  return createEntry(deps, caller, IMAGES, {
    name,
    async insert(tx) {
      if (kind === "netboot") await checkWorkflow(tx, image);
      return insertImage(tx, { ...image, createdBy: actorOf(caller) });
    },
    data: { ...telling, success_proof: successProof, ...(seedOn !== null && { seed_on: seedOn }) },
  });
}

export const pageImages = (deps: ServiceDeps, request: ListRequest): Promise<ListPage<ImageRow>> =>
  pageEntries(deps, IMAGES, request);

export const deleteImage = async (deps: ServiceDeps, caller: Caller, name: string): Promise<void> =>
  deleteEntry(deps, caller, IMAGES, checkName(name));

function checkName(text: string): string {
  if (NAME.test(text)) return text;
  throw refusal(
    "name",
    `${JSON.stringify(text.slice(0, 80))} is not an image name (letters, digits and . _ : / @ + -)`,
  );
}

function checkLocation(text: string): string {
  const isUrl = URL.canParse(text) && /^(https?|nfs|cifs):$/.test(new URL(text).protocol);
  if (isUrl && text.length <= LONGEST_LOCATION && isPrintable(text)) return text;
  throw refusal("location", "must be an http, https, nfs or cifs URL");
}

/** What is installed over the network is a workflow: it must be there, and must not name another image. */
async function checkWorkflow(
  tx: Transaction,
  { location, digest, seed }: Pick<ImageRow, "location" | "digest" | "seed">,
) {
  const [workflow] = await listWorkflows(tx, { ids: [location], activeOnly: true });
  if (!workflow)
    throw refusal(
      "location",
      `workflow ${location.slice(0, 80)} does not exist; a netboot image names a workflow by its id`,
    );
  const { boot } = workflow;
  if (seed !== null && !("cmdline" in boot && boot.cmdline.includes(SEED_WORD)))
    throw refusal(
      "seed",
      `the command line of workflow ${workflow.id} does not say ${SEED_WORD}, so that its installer would not find the seed; add it, such as ds=nocloud-net;s=${SEED_WORD}`,
    );
  if (boot.method === "image" && boot.image_digest !== digest)
    throw refusal(
      "digest",
      `must be ${boot.image_digest}, the digest of the image that workflow ${workflow.id} installs`,
    );
}

/** What boot scripts fill in: where the machine fetches its seed. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: the word itself
const SEED_WORD = "${seed}";

/** A seed must get to where its installer looks for it. */
function checkSeed(kind: ImageRow["kind"], seed: SeedFormat, seedOn: SeedPlace | null): void {
  if (kind === "disk") throw refusal("seed", "a disk image is written as it is and reads no seed: leave it out");
  if (kind === "iso" && seedOn !== "image" && !readsFromMedia(seed))
    throw refusal(
      "seed",
      `installers do not look for ${seed} on a second medium: give the image kind netboot, or seed_on image if its installer reads its own medium`,
    );
}

function checkSeedOn({ kind, seed, location }: Pick<ImageRow, "kind" | "seed" | "location">, seedOn: SeedPlace): void {
  if (kind !== "iso" || seed === null) throw refusal("seed_on", "is for images of kind iso that have a seed");
  // The server reads the image itself, in order to write the seed into it.
  if (seedOn !== "medium" && !/^https?:$/.test(new URL(location).protocol))
    throw refusal("location", `must be an http or https URL for an image with seed_on ${seedOn}`);
}

function checkDigest(text: string): string {
  if (DIGEST.test(text)) return text;
  throw refusal("digest", "must be sha256: and 64 lower-case hexadecimal digits");
}

function checkWord<const W extends string>(text: string, words: readonly W[], field: string): W {
  const word = words.find((each) => each === text);
  if (word !== undefined) return word;
  throw refusal(field, `must be one of ${words.join(", ")}, got ${JSON.stringify(text.slice(0, 80))}`);
}
