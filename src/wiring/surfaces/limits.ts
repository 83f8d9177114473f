import { SignInThrottle } from "../../api/auth/sign-in-throttle.ts";
import { ApiLimits } from "../../api/transport/limits/api-limits.ts";
import { type Config, createAddressFilter } from "../../config.ts";
import type { Log } from "../../kernel/log.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { observeLimits } from "../../telemetry/observers.ts";

/** What callers are held to, as configured. */
export function wireLimits(
  { limits: { exemptNetworks, failedSignIns, ...rules }, trustedProxies }: Config,
  { log, metrics, clock }: { readonly log: Log; readonly metrics: Metrics; readonly clock: Clock },
): { readonly limits: ApiLimits; readonly throttle: SignInThrottle } {
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
  const throttle = new SignInThrottle({
    ...{ failedSignIns, clock, countedAs: (address) => limits.countedAs(address) },
    refused: (by, address) => limits.ledger.refuse("failed_sign_ins", { by, address }),
  });
  limits.ledger.show("failed_sign_ins", failedSignIns, () => throttle.fullest());
  return { limits, throttle };
}
