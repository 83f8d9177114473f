import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { PAGES } from "../pages/pages.ts";
import { LostPage } from "./lost-page.tsx";
import { PageFault } from "./page-fault.tsx";
import { Shell } from "./shell.tsx";

const lazyPage = (load: () => Promise<ComponentType>) =>
  lazyRouteComponent(async () => ({ Page: await load() }), "Page");
const loadSignIn = async () => (await import("../pages/sign-in/sign-in.tsx")).SignIn;

const root = createRootRoute({ notFoundComponent: LostPage });

const shell = createRoute({ getParentRoute: () => root, id: "shell", component: Shell });
const signIn = createRoute({ getParentRoute: () => root, path: "/sign-in", component: lazyPage(loadSignIn) });

const pages = PAGES.map(({ path, load }) =>
  createRoute({
    getParentRoute: () => shell,
    path,
    component: lazyPage(load),
  }),
);

/** Words stay words in the address: `?filter=phase=READY` is what people would type. */
export const router = createRouter({
  routeTree: root.addChildren([signIn, shell.addChildren(pages)]),
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const kept = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
    const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
    return text === "" ? "" : `?${text}`;
  },
  defaultErrorComponent: PageFault,
  defaultPreload: "intent",
  scrollRestoration: true,
});
