import type { CallContext } from "../../capabilities/call.ts";
import type { Artifacts } from "../../capabilities/rack/artifacts.ts";
import type { StreamCall, StreamProgress } from "../../capabilities/stream.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type Handlers, happened, waitFor } from "../../kernel/outcome.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { rackFirmwareLifecycle } from "./lifecycle.ts";
import type { CataloguedFirmware, FileSign } from "./rack-firmware.ts";

export interface RackFirmwareContext {
  readonly call: CallContext;
  /** Absent: this server keeps no files. */
  readonly artifacts: Artifacts | undefined;
  /** What the record's files are asked for with; undefined where they need none. */
  readonly token: () => Promise<string | undefined>;
}

/** How soon the end of a download is seen. */
const ASKED_EVERY: Duration = seconds(2);
/** Progress is a row of the journal, and an event for everybody who watches: it is told in steps. */
const PERCENT_STEP = 5;
const ROOM_RECHECK: Duration = seconds(5);
/** Of a piece of a file that is written to the disk. */
const LONGEST_WRITE: Duration = seconds(30);

/**
 * The download is a stream under the record's lease: it may last for hours, and a replica that takes over finds nobody writing to the
 * file that it goes on with.
 */
export const rackFirmwareHandlers: Handlers<typeof rackFirmwareLifecycle, CataloguedFirmware, RackFirmwareContext> = {
  async downloading(firmware, { call, artifacts, token }) {
    const { streams } = call;
    if (!artifacts || !streams)
      throw new StepFailure("not_on_this_server", "this server keeps no firmware files", {
        facts: { what: "setting", name: "firmware.directory" },
      });
    const under = streams.underWay;
    if (under) {
      const end = under.take();
      if (!end) return waitFor(describeProgress(under.progress), ASKED_EVERY);
      if ("error" in end) throw end.error;
      return happened("artifacts_complete", { facts: { sizes: end.value as JsonObject } });
    }
    if (streams.isFull) return waitFor("waits until another stream of this replica has ended", ROOM_RECHECK);
    const secret = await token();
    await streams.open({ to: "artifact_server", longestChunk: LONGEST_WRITE }, (stream) =>
      fetchAll(firmware, artifacts, secret, stream),
    );
    return waitFor(describeProgress(undefined), ASKED_EVERY);
  },
};

/** One after the other: the sizes, by their digests. A file that two components share comes once. */
async function fetchAll(
  { id, files }: CataloguedFirmware,
  artifacts: Artifacts,
  secret: string | undefined,
  stream: StreamCall,
): Promise<Readonly<Record<string, number>>> {
  const wanted = [...new Map(files.map((file) => [file.digest, file])).values()];
  const of = wanted.every(({ bytes }) => bytes !== null)
    ? wanted.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
    : undefined;
  const sizes: Record<string, number> = {};
  let before = 0;
  for (const { digest, url, bytes, sign } of wanted) {
    const order = {
      digest,
      wantedBy: id,
      url,
      bytes,
      secretHeaders: secret === undefined ? {} : secretHeadersOf(sign, secret),
    };
    const report = (progress: StreamProgress) =>
      stream.report({ bytes: before + progress.bytes, ...(of !== undefined && { of }) });
    sizes[digest] = await artifacts.fetch(order, { ...stream, report });
    before += sizes[digest];
  }
  return sizes;
}

/** What an artifact server is shown of the record's token. */
export const secretHeadersOf = (sign: FileSign, token: string): Readonly<Record<string, string>> =>
  sign === "artifactory" ? { "x-jfrog-art-api": token } : { authorization: `Bearer ${token}` };

/** Of a whole that nobody has told, each time that twice as much has come. */
function describeProgress(progress: StreamProgress | undefined): string {
  if (progress === undefined) return "downloading its files";
  const { bytes, of } = progress;
  if (of !== undefined && of > 0) {
    const percent = Math.floor((100 * bytes) / of / PERCENT_STEP) * PERCENT_STEP;
    return `downloading its files: ${percent} % of ${(of / 1_000_000).toFixed(1)} MB`;
  }
  const megabytes = Math.floor(bytes / 1_000_000);
  return megabytes === 0
    ? "downloading its files"
    : `downloading its files: more than ${2 ** Math.floor(Math.log2(megabytes))} MB so far`;
}
