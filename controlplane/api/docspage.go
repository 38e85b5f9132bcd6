package api

// docsHTML is the page of the API: plain HTML of the document.
const docsHTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}} {{.Version}}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222; }
h2 { border-bottom: 1px solid #ddd; margin-top: 2.5rem; }
code { font: 13px ui-monospace, monospace; }
.op { margin: 1rem 0; }
.method { display: inline-block; width: 4.5rem; font-weight: 600; }
.more { color: #555; margin-left: 4.5rem; }
table { border-collapse: collapse; }
td { padding: 0 1rem 0 0; vertical-align: top; }
</style>
</head>
<body>
<h1>{{.Title}} {{.Version}}</h1>
<p>The document for programs is <a href="/v1/openapi.json">/v1/openapi.json</a>.
Errors are <a href="#schema-ErrorBody">ErrorBody</a>. Send <code>Authorization: Bearer TOKEN</code> where no other is said.</p>
{{range $tag, $ops := .Tags}}<h2>{{$tag}}</h2>
{{range $ops}}<div class="op" id="{{.ID}}">
<code><span class="method">{{.Method}}</span>{{.Path}}</code>
<div class="more">{{.Summary}}.{{if .About}} {{.About}}{{end}}{{if .Public}} No token.{{end}}<br>
{{if .Query}}Query: <code>{{range $i, $q := .Query}}{{if $i}}, {{end}}{{$q}}{{end}}</code>. {{end}}
{{if .Body}}Body: <code>{{.Body}}</code>. {{end}}{{if .Answer}}Answer: <code>{{.Answer}}</code>. {{end}}
Statuses: <code>{{range $i, $s := .Statuses}}{{if $i}}, {{end}}{{$s}}{{end}}</code></div>
</div>
{{end}}{{end}}
<h2>Records</h2>
{{range $name, $schema := .Schemas}}<h3 id="schema-{{$name}}"><code>{{$name}}</code></h3>
<table>
{{range $field, $s := $schema.Properties}}<tr><td><code>{{$field}}</code></td><td>{{type $s}}</td><td>{{$s.Description}}</td></tr>
{{end}}</table>
{{end}}
</body>
</html>
`
