import type { InstallRouteDeps } from "../api/rest/install-routes.ts";
import { addressGroup } from "../api/transport/limits/client-address.ts";
import type { Config } from "../config/load.ts";
import { createAddressFilter } from "../config.ts";
import { createBatcher, runInHalves } from "../kernel/batcher.ts";
import { AppError } from "../kernel/errors.ts";
import type { ServiceDeps } from "../services/call/deps.ts";
import type { BootRules } from "../services/install/boot/boot.ts";
import { DiscoveryGate, type DiscoveryRules } from "../services/install/boot/discovery-gate.ts";
import { applyReports, type ReportDesk, type ReportRules } from "../services/install/reports.ts";

const MOST = 200;
/** Two, so that one is prepared while the other commits. */
const AT_ONCE = 2;

/** Reports that come in while others are being written are written together: a fleet that installs at once costs few commits. */
export function openReportDesk(deps: ServiceDeps, rules: ReportRules): ReportDesk {
  return createBatcher({
    most: MOST,
    atOnce: AT_ONCE,
    run: (inputs) =>
      runInHalves(inputs, {
        run: (some) => applyReports(deps, rules, some),
        // A database that is away fails them all alike.
        isOfTheItem: (error) => !(error instanceof AppError),
        alone: async (_, cause) => new AppError("internal", "the report could not be kept", {}, { cause }),
      }),
  });
}

export function bootRulesOf({ install }: Config): BootRules {
  const { kernel, initrd } = install.erase;
  return {
    autoRegister: install.autoRegister,
    defaultGroupId: install.defaultGroup,
    eraser:
      kernel === null
        ? null
        : { method: "kernel", kernel_url: kernel, cmdline: "", ...(initrd !== null && { initrd_url: initrd }) },
  };
}

/** Which boots count, and from where their tokens are good. */
export const bootTrustOf = ({ install }: Config): Pick<ServiceDeps, "tokenBinding" | "armedFor"> => ({
  tokenBinding: install.tokenBinding,
  armedFor: install.armedFor,
});

/** Machines that nobody knows are put on record only so fast, and only so many. */
export const discoveryGateOf = (
  { install, limits }: Config,
  around: Pick<DiscoveryRules, "clock" | "refused">,
): DiscoveryGate =>
  new DiscoveryGate({
    most: install.maxDiscovered,
    perMinute: install.discoveredPerMinute,
    perAddress: install.discoveredPerAddress,
    isExempt: createAddressFilter(limits.exemptNetworks),
    placeOf: addressGroup,
    ...around,
  });

/** What the routes of network installs stand on. */
export const installRouteDeps = (deps: ServiceDeps, config: Config, discovery?: DiscoveryGate): InstallRouteDeps => ({
  services: deps,
  installTimeout: config.install.timeout,
  boot: { ...bootRulesOf(config), ...(discovery && { discovery }) },
  publicUrl: config.install.publicUrl,
  reports: openReportDesk(deps, { requireTokens: config.install.requireReportTokens }),
});
