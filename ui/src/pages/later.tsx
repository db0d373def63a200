/** The page `later`. */
export default function LaterPage() {
  return <h1>later</h1>;
}
