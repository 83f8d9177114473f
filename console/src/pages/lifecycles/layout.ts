import { graphlib, layout } from "@dagrejs/dagre";
import type { Lifecycle, LifecycleTransition } from "../../../../contract/millwright/v1/lifecycle_pb.js";

export interface PlacedState {
  readonly name: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface PlacedWay {
  readonly key: string;
  readonly path: string;
  readonly isFailure: boolean;
  readonly says: string;
}

export interface PlacedLifecycle {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly states: readonly PlacedState[];
  readonly ways: readonly PlacedWay[];
}

/** Where a thing goes that is removed; no state has such a name. */
export const GONE = "(gone)";
const HEIGHT = 40;
const MARGIN = 12;
const widthOf = (name: string): number => Math.max(88, name.length * 8 + 36);

/** Places states and the ways between them. Ways from any state are left out: they would cross all others. */
export function placeLifecycle({ states, transitions }: Pick<Lifecycle, "states" | "transitions">): PlacedLifecycle {
  const ways = Map.groupBy(transitions.flatMap(wayOf), ({ from, to }) => `${from} ${to}`);
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 22, ranksep: 56, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  const hasEnd = [...ways.values()].some(([way]) => way?.to === GONE);
  for (const name of [...states.map((state) => state.name), ...(hasEnd ? [GONE] : [])])
    graph.setNode(name, { width: widthOf(name), height: HEIGHT });
  for (const [way] of ways.values()) if (way) graph.setEdge(way.from, way.to);
  layout(graph);
  const points = [...ways.values()].flatMap(([way]) => (way ? graph.edge(way.from, way.to).points : []));
  return {
    ...boundsOf(
      graph.nodes().map((name) => graph.node(name)),
      points,
    ),
    states: graph.nodes().map((name) => {
      const { x, y, width: wide, height: high } = graph.node(name);
      return { name, x: x - wide / 2, y: y - high / 2, width: wide, height: high };
    }),
    ways: [...ways].flatMap(([key, among]) => {
      const [first] = among;
      if (first === undefined) return [];
      return {
        key,
        path: pathThrough(graph.edge(first.from, first.to).points),
        isFailure: among.every(({ isFailure }) => isFailure),
        says: `${first.from} → ${first.to}: ${among.map(({ trigger }) => trigger.replaceAll("_", " ")).join(", ")}`,
      };
    }),
  };
}

function wayOf({ from, to, deletes, stays, failure, trigger }: LifecycleTransition) {
  // One that leads back to where it came from is a new beginning of the same state: the table says so.
  if (from === "*" || stays || from === to) return [];
  return [{ from, to: deletes ? GONE : to, isFailure: failure, trigger }];
}

/** Ways may lead around the states that they pass by, and beyond what the layout calls its own size. */
function boundsOf(
  nodes: readonly { readonly x: number; readonly y: number; readonly width: number; readonly height: number }[],
  points: readonly { readonly x: number; readonly y: number }[],
): Pick<PlacedLifecycle, "left" | "top" | "width" | "height"> {
  const xs = [...nodes.flatMap(({ x, width }) => [x - width / 2, x + width / 2]), ...points.map(({ x }) => x)];
  const ys = [...nodes.flatMap(({ y, height }) => [y - height / 2, y + height / 2]), ...points.map(({ y }) => y)];
  const [left, top] = [Math.min(...xs) - MARGIN, Math.min(...ys) - MARGIN];
  return { left, top, width: Math.max(...xs) + MARGIN - left, height: Math.max(...ys) + MARGIN - top };
}

function pathThrough(points: readonly { readonly x: number; readonly y: number }[]): string {
  const [first, ...rest] = points.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  return `M ${first} L ${rest.join(" L ")}`;
}
