import type { MethodRoles, MethodThings } from "../../api/auth/access.ts";
import type { InstallRouteDeps } from "../../api/rest/install-routes.ts";
import type { AnyRoute } from "../../api/rest/route.ts";
import type { ServicePart } from "../../api/transport/service-parts.ts";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { Allocator } from "../../capabilities/fleet/allocator.ts";
import type { Maas } from "../../capabilities/fleet/maas.ts";
import type { Provider } from "../../capabilities/provider.ts";
import type { Artifacts } from "../../capabilities/rack/artifacts.ts";
import type { Fabric } from "../../capabilities/rack/fabric.ts";
import type { SeededMedia } from "../../capabilities/seeds/seeded-media.ts";
import type { HandlerOf } from "../../engine/pass.ts";
import type { Thing } from "../../kernel/lifecycle.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { RackLimits } from "../../lifecycles/rack/plan-work.ts";
import type { FailedStep } from "../../runs/executor/run-context.ts";
import type { AnyStep } from "../../runs/model/step.ts";
import type { Runbooks } from "../../runs/steps/scripts/runbooks.ts";
import type { Workflows } from "../../runs/workflows/workflow.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import type { MethodGroup } from "../../services/call/method-groups.ts";
import type { Explainer } from "../../services/explain/explain.ts";
import type { EventSource } from "../../services/system/watch.ts";
import type { SecretStore } from "../../store/access/secrets.ts";
import type { ThingStore, ThingStores } from "../../store/lifecycle/things.ts";
import type { Database } from "../../store/postgres/database.ts";
import type { Listing } from "../../store/postgres/listing.ts";
import type { MachineHardware } from "../machine-hardware.ts";
import type { DeviceTools } from "../rack/device-parts.ts";
import type { RunParts } from "../run-deps.ts";
import type { WiredTarget } from "../run-targets.ts";

/** What handlers may be made from. */
export interface HandlerTools extends DeviceTools {
  readonly db: Database;
  readonly secrets: SecretStore;
  /** Of shelves. */
  readonly provider: Provider;
  /** Of switches. Absent: none are worked on. */
  readonly switches?: Provider;
  readonly clock: Clock;
  readonly monitorEvery: Duration;
  /** Of devices whose events are followed. Absent: as often as all others. */
  readonly monitorEveryWithEvents?: Duration;
  readonly exploreEvery: Duration;
  readonly installTimeout: Duration;
  /** Where BMCs fetch seeds from; null, or absent: nobody has said. */
  readonly seedsAt?: string | null;
  /** Where machines reach the server; null, or absent: where their BMCs do. */
  readonly installersAt?: string | null;
  /** Absent: no image is served with a seed in it. */
  readonly seededMedia?: SeededMedia;
  /** How the MAAS of each site is called. Absent: no MAAS is. */
  readonly maas?: Maas;
  /** Who outside prepares fleet nodes for their users. Absent: nobody does. */
  readonly allocator?: Allocator;
  /** Firmware files. Absent: there are none here. */
  readonly artifacts?: Artifacts;
  /** What racks keep to. Absent: the defaults of the settings. */
  readonly rackLimits?: RackLimits;
  /** What the switches of racks are together. Absent: nobody configures it. */
  readonly fabric?: Fabric;
  /** How trays renew their firmware. Absent: as the defaults of the settings say. */
  readonly hostFirmware?: {
    readonly retryInterval: Duration;
    readonly maxRetries: number;
    readonly flashDeadline: Duration;
  };
  /** How the agents of fleet nodes are dealt with. Absent: as the defaults of the settings say. */
  readonly fleetAgents?: FleetAgentLimits;
  /** Absent where no machines are worked on. */
  readonly runs?: RunTools;
  /** Of all kinds of things. */
  readonly stores: ThingStores;
  /** What runs work on. Empty where no machines are worked on. */
  readonly runTargets: readonly WiredTarget[];
  /** Adds the credentials on record for a BMC. */
  signIn(bmc: Omit<BmcTarget, "username" | "password">, mac: string): Promise<BmcTarget>;
}

export interface FleetAgentLimits {
  readonly taskTtl: Duration;
  /** An agent that was not heard for so long does not call any more. */
  readonly silentAfter: Duration;
  /** Where nodes reach this server; null: nobody has said. */
  readonly server: string | null;
}

export interface RunTools {
  readonly hardware: MachineHardware;
  readonly steps: ReadonlyMap<string, AnyStep>;
  /** Absent: those of the server. */
  readonly workflows?: Workflows;
  /** For metrics and the log. */
  readonly stepFailed?: (failed: FailedStep) => void;
  readonly runbooks: Runbooks;
  /** What steps that start runs start them with: the same as callers do. */
  readonly starting: RunParts;
  /** Names this process. */
  readonly instance: string;
}

/** What a kind of target may be made from. */
export type TargetTools = Omit<HandlerTools, "runs" | "runTargets"> & { readonly runs: RunTools };

/** What RPC methods may be made from. */
export interface MethodDeps {
  readonly services: ServiceDeps;
  /** What runs can do. Absent: the server has no runs. */
  readonly runs?: RunParts;
  readonly events: EventSource;
}

/** What REST routes may be made from. */
export interface RouteDeps extends InstallRouteDeps {
  /** What runs can do. Absent: the server has no runs. */
  readonly runs?: RunParts;
}

/** The words that the command line has for a kind. */
export interface KindWords {
  /** Typed in place of the kind. */
  readonly short?: string;
  /** How long its ids are, where all are of one length. */
  readonly idLength?: number;
}

/** One kind of thing, whole. Everything that serves, moves, explains or documents things takes it from here. */
export interface ThingParts<T extends Thing = Thing> {
  readonly store: ThingStore<T>;
  /** Who handles its states. Undefined: nobody does in this server. */
  readonly handlers?: (tools: HandlerTools) => HandlerOf | undefined;
  /** What runs on it mean, and what their steps need. Absent: runs cannot work on it. */
  readonly runTarget?: (tools: TargetTools) => WiredTarget<T>;
  /** Absent: it is explained by its lifecycle alone. */
  readonly explain?: Explainer;
  readonly methods?: (deps: MethodDeps) => readonly ServicePart[];
  readonly routes?: (deps: RouteDeps) => readonly AnyRoute[];
  /** Who may call its methods and routes. */
  readonly roles?: MethodRoles;
  /** Which things they are about. Absent rows: who may see some things only may not call them. */
  readonly things?: MethodThings;
  /** What a scope must name for them. Absent: no token with a scope may call them. */
  readonly methodGroup?: MethodGroup;
  readonly words?: KindWords;
  /** How callers list it: what they filter and sort by. */
  readonly listing?: AnyListing;
}

/** A listing whose own types nobody asks for any more. */
export type AnyListing = Pick<Listing<string, never>, "name" | "fields" | "order" | "tally" | "dwell">;

/** The kind's own type ends here, since the engine and the services treat all kinds alike. */
export const defineThing = <T extends Thing>(parts: ThingParts<T>): ThingParts => parts as unknown as ThingParts;
