import { ApiLimits } from "../../api/transport/limits/api-limits.ts";
import { type Config, createAddressFilter } from "../../config.ts";
import type { Log } from "../../kernel/log.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { observeLimits } from "../../telemetry/observers.ts";

/** What callers are held to, as configured. */
export function wireLimits(
  { limits: { exemptNetworks, ...rules }, trustedProxies }: Config,
  { log, metrics, clock }: { readonly log: Log; readonly metrics: Metrics; readonly clock: Clock },
): ApiLimits {
  const { refused, showWith } = observeLimits(metrics);
  const limits = new ApiLimits({
    rules: {
      ...rules,
      isExempt: createAddressFilter(exemptNetworks),
      isTrustedProxy: createAddressFilter(trustedProxies),
    },
    ...{ log, clock, refused },
  });
  showWith(() => limits.readings());
  return limits;
}
