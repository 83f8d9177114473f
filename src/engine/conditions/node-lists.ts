import type { CallContext } from "../../capabilities/call.ts";
import type { NodeIdentity } from "../../capabilities/cluster.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import type { NodeMatch } from "../../capabilities/clusters/node-identity.ts";
import { isStranger } from "../../capabilities/device-failure.ts";
import type { ListedNode, NodeList } from "../../capabilities/node-list.ts";
import { messageOf, type StepFailure } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, milliseconds } from "../../kernel/time/duration.ts";
import { indexNodes, matchNode, type NodeIndex } from "../../lifecycles/machine/node-match.ts";
import { LONGEST_CALL } from "../lease/lease.ts";

/** A cluster that takes a second to list its nodes is asked at most every ten. */
const REST_PER_EFFORT = 10;

interface Listing {
  /** When it was asked for: what it says holds from then on. */
  readonly at: Date;
  /** Undefined when the cluster did not answer, or only by keeping us out. */
  readonly index: NodeIndex | undefined;
  /** Why it keeps us out: waiting does not help then. */
  readonly shut?: StepFailure;
  readonly freshUntil: number;
}

export interface NodeListsOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** How long a list is good for. */
  readonly freshFor: Duration;
}

export interface FoundNode {
  readonly match: NodeMatch<ListedNode>;
  readonly at: Date;
}

/** One list of nodes a cluster and round, shared by the checks of all its machines. */
export class NodeLists {
  readonly #options: NodeListsOptions;
  readonly #listings = new Map<string, Promise<Listing> | Listing>();
  readonly #down = new Set<string>();

  constructor(options: NodeListsOptions) {
    this.#options = options;
  }

  /**
   * Undefined when the cluster does not answer. Ends with `call`, while the list that was begun goes on for the others.
   *
   * @throws StepFailure where the cluster keeps us out, or is not the one that we know.
   */
  async find(
    nodes: NodeList,
    target: ClusterTarget,
    identity: NodeIdentity,
    call: CallContext,
  ): Promise<FoundNode | undefined> {
    const listing = await untilStopped(this.#current(nodes, target), call.signal);
    if (listing?.shut) throw listing.shut;
    if (listing?.index === undefined) return undefined;
    return { match: matchNode(listing.index, identity), at: listing.at };
  }

  #current(nodes: NodeList, target: ClusterTarget): Promise<Listing> | Listing {
    // The same name may come to mean another cluster.
    const key = `${target.name} ${target.apiUrl}`;
    const known = this.#listings.get(key);
    if (known instanceof Promise) return known;
    if (known && this.#options.clock.monotonic() < known.freshUntil) return known;
    const listing = this.#list(nodes, target).then((listed) => {
      this.#listings.set(key, listed);
      return listed;
    });
    this.#listings.set(key, listing);
    return listing;
  }

  async #list(nodes: NodeList, target: ClusterTarget): Promise<Listing> {
    const { clock, freshFor, log } = this.#options;
    const at = clock.now();
    const startedAt = clock.monotonic();
    const call: CallContext = {
      // Each request ends by its own deadline, and there are only so many.
      signal: new AbortController().signal,
      subject: `nodes of cluster ${target.name}`,
      mayTouchDevice: (wanted) => milliseconds(Math.min(wanted, LONGEST_CALL)),
    };
    let index: NodeIndex | undefined;
    let shut: StepFailure | undefined;
    try {
      index = indexNodes(await nodes.listNodes(target, call));
      if (this.#down.delete(target.name)) log.info({ cluster: target.name }, "the cluster answers again");
    } catch (error) {
      if (!this.#down.has(target.name))
        log.warn(
          { cluster: target.name, reason: messageOf(error) },
          "nodes cannot be listed; what is known of them stays",
        );
      this.#down.add(target.name);
      if (isStranger(error)) shut = error;
    }
    const took = clock.monotonic() - startedAt;
    return {
      at,
      index,
      ...(shut && { shut }),
      freshUntil: clock.monotonic() + Math.max(freshFor, took * REST_PER_EFFORT),
    };
  }
}

async function untilStopped<T>(value: Promise<T> | T, signal: AbortSignal): Promise<T | undefined> {
  if (!(value instanceof Promise)) return value;
  if (signal.aborted) return undefined;
  const stopped = Promise.withResolvers<undefined>();
  const onStop = () => stopped.resolve(undefined);
  signal.addEventListener("abort", onStop, { once: true });
  try {
    return await Promise.race([value, stopped.promise]);
  } finally {
    signal.removeEventListener("abort", onStop);
  }
}
