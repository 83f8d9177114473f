import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../../contract/grpc/health/v1/health_pb.js";

/** What the parts of the server report to the health service. */
export interface HealthSource {
  isServing(): boolean;
  /** Calls back after each change, until the returned function is called. */
  onChange(changed: () => void): () => void;
}

/** A health source that is switched by hand. */
export class HealthSwitch implements HealthSource {
  #serving: boolean;
  readonly #listeners = new Set<() => void>();

  constructor(serving = false) {
    this.#serving = serving;
  }

  isServing(): boolean {
    return this.#serving;
  }

  set(serving: boolean): void {
    if (serving === this.#serving) return;
    this.#serving = serving;
    for (const listener of this.#listeners) listener();
  }

  onChange(changed: () => void): () => void {
    // Wrapped, so that the same function registered twice is two registrations.
    const listener = () => changed();
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/**
 * The standard health service. Services share the fate of the server: all serve, or none does.
 *
 * Register it last, or at least before serving: it knows the services that the router has when asked.
 */
export function healthRoutes(router: ConnectRouter, source: HealthSource): void {
  const isKnown = (name: string) => name === "" || router.handlers.some(({ service }) => service.typeName === name);
  const statusNow = () => (source.isServing() ? ServingStatus.SERVING : ServingStatus.NOT_SERVING);

  router.service(Health, {
    check({ service }) {
      if (!isKnown(service)) throw new ConnectError(`this server has no service ${service}`, Code.NotFound);
      return { status: statusNow() };
    },
    async *watch({ service }, { signal }) {
      if (!isKnown(service)) {
        yield { status: ServingStatus.SERVICE_UNKNOWN };
        await aborted(signal);
        return;
      }
      for await (const status of distinctStatuses(source, statusNow, signal)) yield { status };
    },
  });
}

async function* distinctStatuses(
  source: HealthSource,
  statusNow: () => ServingStatus,
  signal: AbortSignal,
): AsyncGenerator<ServingStatus> {
  let wake = () => {};
  const stopListening = source.onChange(() => wake());
  signal.addEventListener("abort", () => wake(), { once: true });
  try {
    let sent: ServingStatus | undefined;
    while (!signal.aborted) {
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const status = statusNow();
      if (status !== sent) {
        sent = status;
        yield status;
      } else {
        await changed;
      }
    }
  } finally {
    stopListening();
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
