import { join } from "node:path";
import type { Artifacts } from "../../capabilities/rack/artifacts.ts";
import { type Config, createAddressFilter, publicUrlsOf } from "../../config.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, milliseconds, minutes } from "../../kernel/time/duration.ts";
import { createArtifacts } from "../../providers/artifacts/artifacts.ts";
import type { ArtifactSource } from "../../runs/steps/rack/on-device.ts";
import { type FileListener, fileAddress } from "../../services/rack-firmware/files.ts";
import { createMissingFiles, type MissingFiles } from "../../services/rack-firmware/missing-files.ts";
import type { SecretStore, Signer } from "../../store/access/secrets.ts";
import type { Database } from "../../store/postgres/database.ts";
import { findArtifactName } from "../../store/rack-firmware/rack-firmware.ts";
import { readCaCertificates } from "../ca-certificates.ts";

/** The firmware files of this server, and the same as device runs have them. */
export interface FirmwareFiles {
  readonly artifacts: Artifacts;
  /** Files that other replicas have, and this one has not. */
  readonly missingFiles: MissingFiles;
  readonly artifactSource: ArtifactSource;
}

export function wireFirmwareFiles(config: Config, world: World): FirmwareFiles {
  const { firmware, rack, dataDir } = config;
  const artifacts = createArtifacts({
    directory: firmware.directory ?? join(dataDir, "firmware"),
    mayReach: createAddressFilter(firmware.allowedNetworks),
    largest: firmware.maxArtifactBytes,
    ...(firmware.caFile !== null && { caCertificates: readCaCertificates(firmware.caFile, "firmware.ca_file") }),
  });
  const missingFiles = createMissingFiles({ ...world, artifacts });
  const server = publicUrlsOf(config).firmware;
  const listener = config.bmc.listen === null ? "shared" : "own";
  return {
    artifacts,
    missingFiles,
    artifactSource: createArtifactSource({
      ...world,
      artifacts,
      missingFiles,
      server,
      listener,
      validFor: rack.flashDeadline,
    }),
  };
}

interface World {
  readonly db: Database;
  readonly secrets: Signer & Pick<SecretStore, "get">;
  readonly clock: Clock;
}

interface ArtifactSourceWiring extends World {
  readonly artifacts: Artifacts;
  readonly missingFiles: MissingFiles;
  /** Where BMCs reach this server; null: nobody has said. */
  readonly server: string | null;
  readonly listener: FileListener;
  /** For how long an address holds: for as long as the flash that it is for may take. */
  readonly validFor: Duration;
}

/** Of an address that a BMC was given late in its time, the whole file can still be fetched. */
const MARGIN: Duration = minutes(5);

/** The files as device runs send them, or have devices fetch them. */
const createArtifactSource = (wiring: ArtifactSourceWiring): ArtifactSource => {
  const { db, secrets, artifacts, missingFiles, clock, server, listener, validFor } = wiring;
  const nameOf = async (digest: string) => (await findArtifactName(db, digest)) ?? "firmware.bin";
  return {
    async find(digest) {
      const file = await artifacts.find(digest);
      return file && { name: await nameOf(digest), bytes: file.bytes, chunks: () => file.chunks() };
    },
    async whyMissing(digest) {
      const prepared = await missingFiles.prepare(digest);
      return prepared === "here" ? undefined : prepared.message;
    },
    async uriFor(digest) {
      if (server === null)
        throw new StepFailure(
          "not_on_this_server",
          "this server does not know where BMCs reach it, so that they cannot fetch firmware: set bmc.public_url and restart the server",
          { facts: { what: "setting", name: "bmc.public_url" } },
        );
      return fileAddress(secrets, {
        server,
        listener,
        digest,
        name: await nameOf(digest),
        now: clock.now(),
        validFor: milliseconds(validFor + MARGIN),
      });
    },
  };
};
