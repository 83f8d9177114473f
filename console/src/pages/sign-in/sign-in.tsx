import { Button, PasswordInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { readSignInMethods, signIn } from "../../api/session.ts";
import classes from "./sign-in.module.css";

/** The code of a link is in the part of the address that is sent to nobody. */
const codeOfLink = (): string => new URLSearchParams(window.location.hash.slice(1)).get("code") ?? "";

/** Only pages of our own: an address given from outside must not lead away. */
function placeAfter(): string {
  const to = new URLSearchParams(window.location.search).get("to") ?? "/";
  return /^\/(?![/\\])/.test(to) ? to : "/";
}

/** What came of a sign-in at the issuer, as the server words it in the address. */
const FAILURES: Readonly<Record<string, string>> = {
  denied: "The issuer did not let you in.",
  failed: "The sign-in at the issuer failed; the server's log says why. Try again.",
  refused: "The issuer knows you, and this server gives you no name or role for that; the server's log says why.",
  unavailable: "The issuer does not answer this server. Try again, or use a token.",
  expired: "The sign-in took too long, or was finished before. Try again.",
};
const failureInAddress = (): string => FAILURES[new URLSearchParams(window.location.search).get("why") ?? ""] ?? "";

export function SignIn() {
  const [token, setToken] = useState("");
  const [fault, setFault] = useState(failureInAddress);
  const { data: methods } = useQuery({ queryKey: ["sign-in", "methods"], queryFn: readSignInMethods, retry: false });
  const [isBusy, setBusy] = useState(false);
  const navigate = useNavigate();
  const client = useQueryClient();
  const code = useRef(codeOfLink());

  const enter = async (credential: { readonly token: string } | { readonly code: string }) => {
    setBusy(true);
    setFault("");
    try {
      await signIn(credential);
      client.clear();
      await navigate({ href: placeAfter(), replace: true });
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: once, with the code that the page came with
  useEffect(() => {
    const given = code.current;
    code.current = "";
    if (given === "") return;
    window.history.replaceState(null, "", window.location.pathname + window.location.search);
    void enter({ code: given });
  }, []);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() !== "") void enter({ token });
  };
  return (
    <main className={classes.page}>
      <form className={classes.form} onSubmit={submit}>
        <h1>Millwright</h1>
        {typeof methods?.issuer === "string" && (
          <Button component="a" href={`/auth/login?${new URLSearchParams({ to: placeAfter() })}`}>
            Sign in with {methods.issuer}
          </Button>
        )}
        <PasswordInput
          label="Token"
          description="A bearer token or a JSON Web Token. It is exchanged for a session, and not kept here."
          autoComplete="off"
          data-autofocus
          autoFocus
          value={token}
          onChange={(event) => setToken(event.currentTarget.value)}
        />
        {fault !== "" && (
          <p role="alert" className={classes.fault}>
            {fault}
          </p>
        )}
        <Button type="submit" loading={isBusy}>
          Sign in
        </Button>
        <p className="dim">
          <code>npm start</code> prints a link that signs in. An administrator makes tokens with{" "}
          <code>millwright token create</code>.
        </p>
      </form>
    </main>
  );
}
