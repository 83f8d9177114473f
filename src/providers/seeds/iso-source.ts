import { StepFailure } from "../../kernel/errors.ts";
import type { Download, Downloading } from "../transport/download.ts";
import { UnfitIso } from "./iso-outline.ts";

/** One version of a file on a web server. */
export interface IsoSource {
  readonly location: string;
  readonly bytes: number;
  readonly version: string;
}

/** Reads what lies at the location from there on, in order; `to` is the last byte. */
export type ReadIso = (
  source: IsoSource,
  range: { readonly from: number; readonly to: number },
  signal: AbortSignal,
) => AsyncIterable<Buffer>;

const NO_SECRETS = {};

/** Without user, password and query: those may be secrets. */
function placeOf(location: string): string {
  const { protocol, host, pathname } = new URL(location);
  return `${protocol}//${host}${pathname}`;
}

export const unfit = (location: string, why: string): StepFailure =>
  new StepFailure("image_unfit", `the image at ${placeOf(location)} ${why}`);

/** How long it is, and which version. A server that answers no ranges would have to send all of it for each piece. */
export async function findSource(download: Download, location: string, signal: AbortSignal): Promise<IsoSource> {
  const answer = await download({ url: location, from: 0, to: 0, secretHeaders: NO_SECRETS, signal });
  if (answer === "nothing_left") throw unfit(location, "is empty");
  const { total, version } = answer;
  const isWhole = answer.isWhole;
  answer.close();
  if (isWhole || total === null)
    throw unfit(location, "is on a server that answers no ranges, so that it cannot be read in pieces");
  return { location, bytes: total, version };
}

/** Never mixes two versions: one that took the place of the other is told, before a byte of it is given. */
export const createReadIso = (download: Download): ReadIso =>
  async function* read(source, { from, to }, signal) {
    const answer = await download({ url: source.location, from, to, secretHeaders: NO_SECRETS, signal });
    if (answer === "nothing_left") throw changed(source, "is shorter than it was");
    try {
      checkSame(source, answer, from);
      let left = to - from + 1;
      for await (const chunk of answer.chunks) {
        if (chunk.length > left) throw unfit(source.location, "is on a server that sends more than it was asked for");
        left -= chunk.length;
        yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
      }
      if (left > 0) throw unfit(source.location, "was not sent whole: its server ended the answer early");
    } finally {
      answer.close();
    }
  };

const changed = ({ location }: IsoSource, how: string): StepFailure =>
  unfit(location, `${how}: it was replaced after the installation had begun; start it again`);

function checkSame(source: IsoSource, answer: Downloading, from: number): void {
  const { total, version, start } = answer;
  if (start !== from || total === null) throw unfit(source.location, "is on a server that does not answer ranges");
  if (total !== source.bytes) throw changed(source, `has ${total} bytes instead of ${source.bytes}`);
  if (version !== source.version) throw changed(source, "is another version than it was");
}

/** A refusal to write into it, with the image's name. */
export const namingImage = (location: string, error: unknown): unknown =>
  error instanceof UnfitIso ? unfit(location, error.message) : error;
