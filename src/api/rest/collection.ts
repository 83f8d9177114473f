import { z } from "zod";
import type { Caller } from "../../services/call/caller.ts";
import { cut, listOf, many, objectOf, one, pageQuery } from "./envelopes.ts";
import { type AnyRoute, defineRoute, type Route } from "./route.ts";

export interface Collection<R> {
  /** Of the collection; that of one of its items has `/{id}` behind it. */
  readonly path: string;
  readonly tag: string;
  /** What one of them is called, with a capital letter. */
  readonly called: string;
  readonly id: z.ZodObject<{ id: z.ZodString }>;
  readonly item: z.ZodType;
  readonly json: (record: R) => unknown;
}

type About = Pick<Route, "summary" | "errors" | "example">;

/** The routes that every collection of this contract has, each with the answer that clients know. */
export const defineCollection = <R>(of: Collection<R>) => ({ ...readingRoutes(of), ...writingRoutes(of) });

const pathOfOne = (path: string) => `${path}/{id}`;
const unknownOne = (called: string) => ({ 404: `There is no such ${called.toLowerCase()}.` });

function readingRoutes<R>({ path, tag, called, id, item, json }: Collection<R>) {
  const page = (all: readonly R[], query: Parameters<typeof cut>[1]) => many(cut(all, query).map(json), all.length);
  return {
    /** Everything that `read` finds, cut into pages. */
    list: <Q extends z.ZodRawShape>(
      about: About,
      query: Q,
      read: (query: z.output<z.ZodObject<Q>>) => Promise<readonly R[]>,
    ): AnyRoute =>
      defineRoute({
        method: "GET",
        path,
        tag,
        ...about,
        query: z.strictObject({ ...query, ...pageQuery }),
        answer: listOf(item),
        handle: async (call) => {
          const asked = call.query as z.output<z.ZodObject<Q>> & Parameters<typeof cut>[1];
          return page(await read(asked), asked);
        },
      }),

    show: (about: About, get: (id: string) => Promise<R>): AnyRoute =>
      defineRoute({
        method: "GET",
        path: pathOfOne(path),
        tag,
        ...about,
        params: id,
        errors: unknownOne(called),
        answer: objectOf(item),
        handle: async ({ params }) => one(json(await get(params.id))),
      }),

    /** The items that stand in some relation to one of them: `{path}/{id}/{relation}`. */
    related: (relation: string, about: About, find: (id: string) => Promise<readonly R[]>): AnyRoute =>
      defineRoute({
        method: "GET",
        path: `${pathOfOne(path)}/${relation}`,
        tag,
        ...about,
        params: id,
        query: z.strictObject(pageQuery),
        errors: unknownOne(called),
        answer: listOf(item),
        handle: async ({ params, query }) => page(await find(params.id), query),
      }),
  };
}

function writingRoutes<R>({ path, tag, called, id, item, json }: Collection<R>) {
  const answer = objectOf(item);
  return {
    add: <B extends z.ZodType>(
      about: About,
      body: B,
      make: (body: z.output<B>, caller: Caller) => Promise<R>,
    ): AnyRoute =>
      defineRoute({
        method: "POST",
        path,
        tag,
        ...about,
        body,
        status: 201,
        answer,
        handle: async (call) => one(json(await make(call.body, call.caller)), `${called} created successfully`),
      }),

    /** PATCH leaves as it is what the body leaves out; PUT does not. */
    change: <B extends z.ZodType>(
      method: "PATCH" | "PUT",
      about: About,
      body: B,
      write: (id: string, body: z.output<B>, caller: Caller) => Promise<R>,
    ): AnyRoute =>
      defineRoute({
        method,
        path: pathOfOne(path),
        tag,
        ...about,
        params: id,
        body,
        errors: { ...unknownOne(called), ...about.errors },
        answer,
        handle: async ({ params, body: said, caller }) =>
          one(json(await write(params.id, said, caller)), `${called} updated successfully`),
      }),

    drop: (about: About, remove: (id: string, caller: Caller) => Promise<void>): AnyRoute =>
      defineRoute({
        method: "DELETE",
        path: pathOfOne(path),
        tag,
        ...about,
        params: id,
        errors: { ...unknownOne(called), ...about.errors },
        answer: objectOf(z.null()),
        async handle({ params, caller }) {
          await remove(params.id, caller);
          return one(null, `${called} deleted successfully`);
        },
      }),
  };
}
