import { hostname } from "node:os";
import type { Artifacts } from "../../capabilities/rack/artifacts.ts";
import type { StreamProgress } from "../../capabilities/stream.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, minutes } from "../../kernel/time/duration.ts";
import { secretHeadersOf } from "../../lifecycles/rack-firmware/handlers.ts";
import type { SecretStore } from "../../store/access/secrets.ts";
import type { Database } from "../../store/postgres/database.ts";
import { findArtifactSource } from "../../store/rack-firmware/rack-firmware.ts";
import { tokenSecret } from "./rack-firmware.ts";

/** Why a file is not here yet, and when something has come of it. */
export interface Preparing {
  /** For people. */
  readonly message: string;
  /** Resolves when the download has ended, however. */
  readonly ended: Promise<void>;
}

/**
 * Files of available records that this replica lacks: another replica has downloaded them to a directory of its own, or somebody removed
 * them. They are downloaded again from where their record has them. Nobody's lease is needed for that: each replica fills its own
 * directory, and a file has its name only once it is whole.
 */
export interface MissingFiles {
  /** Begins the download where the file is not here, and it is not under way already. */
  prepare(digest: string): Promise<"here" | Preparing>;
  close(): void;
}

export interface MissingFilesWiring {
  readonly db: Database;
  readonly secrets: Pick<SecretStore, "get">;
  readonly artifacts: Artifacts;
  readonly clock: Clock;
}

/** After a download that failed: another replica may have the file, and the server it comes from is left alone. */
const REST: Duration = minutes(1);

interface Download {
  readonly ended: Promise<void>;
  progress: StreamProgress | undefined;
  /** Why it failed, and when. */
  failed: { readonly why: string; readonly at: number } | undefined;
}

export function createMissingFiles({ db, secrets, artifacts, clock }: MissingFilesWiring): MissingFiles {
  const downloads = new Map<string, Download>();
  const stop = new AbortController();
  const { signal } = stop;

  async function fetch(digest: string, report: (progress: StreamProgress) => void): Promise<void> {
    const source = await findArtifactSource(db, digest);
    if (source === undefined) throw new Error("no available firmware names it");
    const { id, url, bytes, sign } = source;
    const token = await secrets.get(db, tokenSecret(id));
    // Replicas that share the directory after all do not write to the same part.
    const wantedBy = `missing at ${hostname()}`;
    const secretHeaders = token === undefined ? {} : secretHeadersOf(sign, token);
    await artifacts.fetch(
      { digest, url, bytes, wantedBy, secretHeaders },
      {
        subject: `file ${digest}`,
        signal,
        mayTouchDevice: (wanted) => wanted,
        sendChunk: (send) => send(signal),
        report,
      },
    );
  }

  function begin(digest: string): Download {
    const ended = Promise.withResolvers<void>();
    const download: Download = { ended: ended.promise, progress: undefined, failed: undefined };
    downloads.set(digest, download);
    fetch(digest, (progress) => {
      download.progress = progress;
    })
      .then(
        () => downloads.delete(digest),
        (error: unknown) => {
          download.failed = { why: messageOf(error), at: clock.now().getTime() };
        },
      )
      .finally(ended.resolve);
    return download;
  }

  return {
    async prepare(digest) {
      if ((await artifacts.find(digest)) !== undefined) return "here";
      const known = downloads.get(digest);
      const isToTry = known === undefined || (known.failed && clock.now().getTime() - known.failed.at > REST);
      const download = isToTry ? begin(digest) : known;
      return { message: describe(digest, download), ended: download.ended };
    },
    close: () => stop.abort(new Error("the server stops")),
  };
}

function describe(digest: string, { failed, progress }: Download): string {
  const file = `the file ${digest} is not on this server`;
  if (failed) return `${file}, and cannot be downloaded again: ${failed.why}`;
  const sofar = progress === undefined ? "" : `: ${(progress.bytes / 1_000_000).toFixed(1)} MB so far`;
  return `${file}; it is downloaded again${sofar}`;
}
