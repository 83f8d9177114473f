/**
 * What a query is about: the kind of thing first, then the topic, then the thing's id where it is about one. Events name kind and id, so
 * that an event finds the queries that it makes old (`live/refresh.ts`).
 */
export type ThingKey = readonly [kind: string, topic: string, id?: string | undefined, ...more: unknown[]];

/** The kind of what sums up the whole fleet: any event makes it old. */
export const EVERYTHING = "*";

export const summaryKey = (topic: string, ...more: readonly unknown[]): ThingKey => [
  EVERYTHING,
  topic,
  undefined,
  ...more,
];
export const listKey = (kind: string, ...more: readonly unknown[]): ThingKey => [kind, "list", undefined, ...more];
export const topicKey = (kind: string, topic: string, id: string, ...more: readonly unknown[]): ThingKey => [
  kind,
  topic,
  id,
  ...more,
];
