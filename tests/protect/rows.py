"""Ways to make a program of the host run something from a workspace. Each row: what it is, its verdict, and how to try it.

A row is (title, verdict, setup, plant, trigger):
  verdict  "held": not applied without --force; "noticed": applied with a remark; a text: out of scope, and why.
  setup    shell text on the host, before; the workspace is the current directory and HOME lies beside it
  plant    shell text in the box; a list is several boxes, each applied
  trigger  shell text on the host, afterwards: what a person would do; None where Debian has no such program: then the files
           themselves are looked at
@M@ is the file whose existence tells that something ran, @W@ the workspace."""

REPO = "git init -q -b main . && echo a >f && git add f && git commit -qm x"
RUN = "printf '#!/bin/sh\\ntouch @M@\\n' >{0}; chmod +x {0}"
STATUS = "touch f; git status"
rows = []


def row(title, verdict, setup, plant, trigger=None):
    rows.append((title, verdict, setup, plant, trigger))


def run(path):
    return RUN.format(path)


# ---- git: hooks ----
for hook, trigger in [("pre-commit", "echo b >f; git commit -qam y"), ("prepare-commit-msg", "git commit -q --allow-empty -m y"), ("commit-msg", "git commit -q --allow-empty -m y"),
                      ("post-commit", "git commit -q --allow-empty -m y"), ("post-checkout", "git checkout -q -b z"), ("pre-rebase", "git checkout -q -b o; git commit -q --allow-empty -m o; git checkout -q main; git commit -q --allow-empty -m n; git rebase -q o"),
                      ("reference-transaction", "git branch new"), ("post-index-change", "touch f; git status; git add f"),
                      ("post-rewrite", "git commit -q --amend -m z"), ("post-merge", "git branch o; git merge -q o; git checkout -q -b p; git commit -q --allow-empty -m p; git checkout -q main; git merge -q p")]:
    row(f"git hook {hook}", "held", REPO, "mkdir -p .git/hooks; " + run(f".git/hooks/{hook}"), trigger)
row("git hook by a rename", "held", REPO, run("x") + "; mv x .git/hooks/post-checkout", "git checkout -q -b z")
row("git hook, the mode of one that exists", "held", REPO + "; printf '#!/bin/sh\\ntouch @M@\\n' >.git/hooks/post-checkout; chmod 644 .git/hooks/post-checkout", "chmod +x .git/hooks/post-checkout", "git checkout -q -b z")
row("git hooks directory replaced by a link", "held", REPO, "mkdir h; " + run("h/post-checkout") + "; rm -rf .git/hooks; ln -s ../h .git/hooks", "git checkout -q -b z")
row("git hook that is a link to a file of the tree", "held", REPO, run("x") + "; ln -s ../../x .git/hooks/post-checkout", "git checkout -q -b z")
row("git hook of a submodule", "held", "git init -q -b main ../s; git -C ../s commit -q --allow-empty -m s; " + REPO + "; git -c protocol.file.allow=always submodule -q add ../s sub",
    run(".git/modules/sub/hooks/post-checkout"), "git -C sub checkout -q -b z")
row("git hook of a linked worktree", "held", REPO + "; git worktree add -q wt", "mkdir -p .git/worktrees/wt; printf '[core]\\n hooksPath = @W@/h\\n' >.git/config.worktree; printf '[extensions]\\n worktreeConfig = true\\n' >>.git/config; mkdir h; " + run("h/post-checkout"), "git checkout -q -b z")

# ---- git: configuration ----
for key, trigger in [("core.fsmonitor=@P@", STATUS), ("core.hooksPath=@W@/h", "git checkout -q -b z"), ("core.pager=@P@", "script -qec 'git log' /dev/null"), ("core.editor=@P@", "git commit --amend"),
                     ("core.sshCommand=@P@", "git fetch ssh://localhost/x"), ("core.gitProxy=@P@", "git fetch git://localhost/x"), ("core.askPass=@P@", "printf 'protocol=https\\nhost=h\\n\\n' | setsid git credential fill"), ("alias.st=!@P@", "git st"), ("diff.external=@P@", "echo b >f; git diff"),
                     ("sequence.editor=@P@", "git rebase -i HEAD"), ("gpg.program=@P@", "git commit -q --allow-empty -S -m y"), ("credential.helper=!@P@", "printf 'protocol=https\\nhost=h\\n\\n' | git credential fill"),
                     ("pager.log=@P@", "script -qec 'git log' /dev/null"), ("uploadpack.packObjectsHook=@P@", None), ("remote.o.vcs=x", None), ("remote.o.uploadpack=@P@", "git config remote.o.url . ; git fetch o"), ("protocol.ext.allow=always", None),
                     ("mergetool.z.cmd=@P@", "git checkout -q -b o; echo 1 >f; git commit -qam 1; git checkout -q main; echo 2 >f; git commit -qam 2; git merge -q o; git mergetool -y --tool=z"), ("difftool.z.cmd=@P@", "echo b >f; git difftool -y --tool=z"), ("merge.z.driver=@P@", "echo '* merge=z' >.git/info/attributes; git checkout -q -b o; echo 1 >f; git commit -qam 1; git checkout -q main; echo 2 >f; git commit -qam 2; git merge -q o"), ("diff.z.textconv=@P@", "echo '* diff=z' >.git/info/attributes; echo b >f; git diff"), ("diff.z.command=@P@", "echo '* diff=z' >.git/info/attributes; echo b >f; git diff"), ("gpg.ssh.program=@P@", "git -c gpg.format=ssh -c user.signingKey=key::x commit -q --allow-empty -S -m y"), ("gpg.ssh.defaultKeyCommand=@P@", "git -c gpg.format=ssh commit -q --allow-empty -S -m y"), ("trailer.z.command=@P@", "echo x | git interpret-trailers --trailer z=1"), ("trailer.z.cmd=@P@", "echo x | git interpret-trailers --trailer z=1"), ("remote.o.receivepack=@P@", "git push ssh://localhost/x 2>/dev/null; git config remote.o.url @W@/.git; git push o main:z"), ("submodule.s.update=!@P@", "git init -q -b main ../s; git -C ../s commit -q --allow-empty -m s; git -c protocol.file.allow=always submodule -q add --name s ../s sub; git commit -qm sub; git -C sub commit -q --allow-empty -m t; git submodule update"), ("web.browser=z", None), ("init.templateDir=@W@/t", None), ("core.alternateRefsCommand=@P@", "git clone -q . ../o; echo @W@/../o/.git/objects >.git/objects/info/alternates; git fetch -q ../o main"), ("filter.z.clean=@P@", "echo '* filter=z' >.git/info/attributes; echo b >f; git add f"), ("interactive.diffFilter=@P@", None), ("sendemail.smtpServer=@P@", None),
                     ("browser.z.cmd=@P@", "git web--browse --browser=z http://localhost/"), ("man.z.cmd=@P@", "git config --global man.viewer z; git help -m log"), ("tar.z.command=@P@", "git archive --format=z HEAD"), ("include.path=@W@/h/inc", "printf '[core]\\n fsmonitor = @W@/p\\n' >h/inc; " + STATUS), ("core.worktree=/tmp", None), ("core.attributesFile=@W@/h/att", "echo '* diff=z' >h/att; git config --global diff.z.textconv @W@/p; echo b >f; git diff")]:
    name, value = key.split("=", 1)
    row(f"git configuration {name}", "held", REPO, run("p") + "; mkdir -p h; cp p h/post-checkout; git config --file .git/config " + f"'{name}' '{value}'".replace("@P@", "@W@/p"), trigger)
row("git configuration with a byte-order mark (W1e)", "held", REPO, run("p") + "; { printf '\\357\\273\\277[core]\\n\\tfsmonitor = @W@/p\\n'; cat .git/config; } >c; mv c .git/config", STATUS)
row("git configuration behind 1 MiB of comment (W1e)", "held", REPO, run("p") + "; { head -c 1100000 /dev/zero | tr '\\0' '#'; printf '\\n[core]\\n\\tfsmonitor = @W@/p\\n'; } >>.git/config", STATUS)
row("git configuration of a worktree", "held", REPO + "; git config extensions.worktreeConfig true", run("p") + "; printf '[core]\\n\\tfsmonitor = @W@/p\\n' >.git/config.worktree", STATUS)
row(".git/info/attributes", "held", REPO + "; git config filter.z.clean \"sh -c 'touch @M@; cat'\"", "echo '* filter=z' >.git/info/attributes", "echo b >f; git add f")
row(".gitattributes", "held", REPO + "; git config filter.z.clean \"sh -c 'touch @M@; cat'\"", "echo '* filter=z' >.gitattributes", "echo b >f; git add f")
row(".gitattributes of a directory", "held", REPO + "; git config diff.z.textconv \"sh -c 'touch @M@; cat'\"; mkdir d; echo a >d/f; git add d; git commit -qm d", "echo '* diff=z' >d/.gitattributes", "echo b >d/f; git diff")
row(".gitmodules", "held", REPO, "printf '[submodule \"x\"]\\n path = x\\n url = ./x\\n' >.gitmodules")
row("an interactive rebase with exec", "held", REPO + "; git commit -q --allow-empty -m y", "mkdir -p .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD | tee onto orig-head >/dev/null; echo refs/heads/main >head-name; echo 'exec touch @M@' >git-rebase-todo; echo 0 >msgnum; echo 1 >end; : >interactive; : >done", "GIT_EDITOR=true git rebase --continue")
row("the sequencer's list", "held", REPO, "mkdir -p .git/sequencer; echo 'exec touch @M@' >.git/sequencer/todo")

# ---- git: what is staged, and objects in the place of others ----
row("a protected name in the index alone", "held", REPO, "echo 'touch @M@' >.envrc; git add .envrc; rm .envrc", "git restore .; . ./.envrc")
row("a protected name in the index, committed", "held", REPO, "echo 'touch @M@' >.envrc; git add .; git -c user.name=a -c user.email=a@b commit -qm y", "git stash; git checkout -q .; . ./.envrc")
row("a protected name in an index of version 4", "held", REPO, "echo 'touch @M@' >.envrc; git add .envrc; git update-index --index-version 4; rm .envrc", "git restore .; . ./.envrc")
row("a protected name in a split index", "held", REPO, "echo 'touch @M@' >.envrc; git add .envrc; git update-index --split-index; rm .envrc", "git restore .; . ./.envrc")
row("a protected name that the host's index has otherwise", "held", REPO + "; : >.envrc; git add .envrc; git commit -qm e", "echo 'touch @M@' >.envrc; git add .envrc; : >.envrc", "git restore .; . ./.envrc")
row("a protected name in an index with SHA-256", "held", REPO.replace("-q -b main", "-q --object-format=sha256 -b main"), "echo 'touch @M@' >.envrc; git add .envrc; rm .envrc", "git restore .; . ./.envrc")
row("a hook of the tree in the index", "held", REPO + "; mkdir hooks; echo '#!/bin/sh' >hooks/post-checkout; chmod +x hooks/post-checkout; git add hooks; git commit -qm h; git config core.hooksPath hooks", "echo 'touch @M@' >>hooks/post-checkout; git add hooks; echo '#!/bin/sh' >hooks/post-checkout", "git restore .; git checkout -q -b z")
row("a protected name in the index of a submodule", "held", "git init -q -b main ../s; git -C ../s commit -q --allow-empty -m s; " + REPO + "; git -c protocol.file.allow=always submodule -q add ../s sub", "cd sub; echo 'touch @M@' >.envrc; git add .envrc; rm .envrc", "cd sub; git restore .; . ./.envrc")
row("a protected name in the index of a linked worktree", "held", REPO + "; git worktree add -q wt", "cd wt; echo 'touch @M@' >.envrc; git add .envrc; rm .envrc", "cd wt; git restore .; . ./.envrc")
row(".gitattributes in the index", "held", REPO + "; git config filter.z.clean \"sh -c 'touch @M@; cat'\"", "echo '*.d filter=z' >.gitattributes; git add .gitattributes; rm .gitattributes; echo 1 >z.d", "git add z.d")
for bit in ("assume-unchanged", "skip-worktree"):
    row(f"a change that is hidden by {bit}", "held", REPO, f"echo evil >f; git update-index --{bit} f", "git status --porcelain | grep -q f || touch @M@")
row("objects of another repository", "held", REPO + "; git init -q -b main ../o; git -C ../o commit -q --allow-empty -m o; git -C ../o rev-parse HEAD >id", "echo @W@/../o/.git/objects >.git/objects/info/alternates", "git cat-file -e $(cat id) && touch @M@")
REPLACE = "git replace HEAD $(echo other | git -c user.name=a -c user.email=a@b commit-tree HEAD^{tree})"
row("a commit that another replaces", "held", REPO, REPLACE, "git log --format=%s | grep -q other && touch @M@")
row("a commit that another replaces, packed", "held", REPO, REPLACE + "; git pack-refs --all", "git log --format=%s | grep -q other && touch @M@")

# ---- git: other directories that it takes for a repository ----
BARE = "mkdir -p {0}/objects {0}/refs; echo 'ref: refs/heads/main' >{0}/HEAD; printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n worktree = @W@\\n fsmonitor = @W@/p\\n' >{0}/config"
row("a bare repository", "held", "", run("p") + "; echo a >f; " + BARE.format("d"), "cd d; git add -A :/; git status")
row("a bare repository made of links (W1a)", "held", "", run("p") + "; mkdir d x; echo a >f; printf 'ref: refs/heads/main\\n' >x/h; mkdir x/o x/r; printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n worktree = @W@\\n fsmonitor = @W@/p\\n' >x/c; cp x/h d/HEAD; ln -s ../x/o d/objects; ln -s ../x/r d/refs; ln -s ../x/c d/config",
    "cd d; git add -A :/; git status")
row("HEAD as a link too (W1a)", "held", "", run("p") + "; mkdir d x; echo a >f; mkdir x/o x/r; printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n worktree = @W@\\n fsmonitor = @W@/p\\n' >x/c; ln -s refs/heads/main d/HEAD; ln -s ../x/o d/objects; ln -s ../x/r d/refs; ln -s ../x/c d/config",
    "cd d; git add -A :/; git status")
row("a repository in two runs, refs a file first (W1a)", "held", "", [run("p") + "; echo a >f; " + BARE.format("d") + "; rmdir d/refs; echo x >d/refs", "rm -f d/refs; mkdir -p d/refs d/objects; [ -e d/HEAD ] || echo 'ref: refs/heads/main' >d/HEAD"], "cd d; git add -A :/; git status")
row("a repository in three runs, name by name (W1a)", "held", "", [run("p") + "; echo a >f; " + BARE.format("d") + "; rm -r d/refs d/objects", "mkdir d/objects", "mkdir d/refs"], "cd d; git add -A :/; git status")
row("objects as an executable file (W1a)", "held", "", run("p") + "; echo a >f; " + BARE.format("d") + "; rmdir d/objects; cp p d/objects; chmod 755 d/objects", None)
row("a bare repository beneath .git and a link to it (W1a)", "held", REPO, run("p") + "; " + BARE.format(".git/docs") + "; ln -s .git/docs docs", "cd docs; git add -A :/; git status")
row("a bare repository beneath .git/refs/heads (W1a)", "held", REPO, run("p") + "; " + BARE.format(".git/refs/heads"), "cd .git/refs/heads; git add -A :/; git status")
row("a bare repository beneath .git/logs (W1a)", "held", REPO, run("p") + "; " + BARE.format(".git/logs/a"), "cd .git/logs/a; git add -A :/; git status")
row("a repository by commondir (W1a)", "held", "mkdir -p ../o; git init -q --bare ../o", run("p") + "; mkdir d; echo 'ref: refs/heads/main' >d/HEAD; echo @W@/c >d/commondir; mkdir -p c/objects; mkdir c/refs2; printf '[core]\\n fsmonitor = @W@/p\\n' >c/config; mv c/refs2 c/refs; echo a >f", "cd d; git --work-tree=@W@ add -A; git --work-tree=@W@ status")
row("a new repository in a subdirectory", "held", REPO, run("p") + "; mkdir s; cd s; git init -q .; git config core.fsmonitor @W@/p", "cd s; git add -A; git status")
row("a .git file that leads to a directory of the tree", "held", "mkdir s", run("p") + "; " + BARE.format("s/n") + "; echo 'gitdir: n' >s/.git", "cd s; echo a >f; git add -A :/; git status")
row("a .git link that leads to a directory of the tree", "held", "mkdir s", run("p") + "; " + BARE.format("n") + "; ln -s ../n s/.git", "cd s; echo a >f; git add -A :/; git status")
row("the configuration of a bare repository of the host", "held", "git init -q --bare b.git", run("p") + "; mkdir -p w; printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n worktree = @W@/w\\n fsmonitor = @W@/p\\n' >b.git/config; echo a >w/f", "cd b.git; git add -A :/; git status")
row("a hook of a bare repository of the host", "held", REPO + "; git init -q --bare b.git", run("b.git/hooks/post-update") , "git push -q b.git main")
row("the configuration of a separate git directory (W1b)", "held", "git init -q -b main --separate-git-dir=r .; echo a >f; git add f; git commit -qm x", run("p") + "; git config --file r/config core.fsmonitor @W@/p", STATUS)
row(".GIT in capitals", "held", "", "mkdir -p .GIT/hooks; " + run(".GIT/hooks/post-checkout"))

# ---- git: where the host's own configuration points (W1b) ----
FSM = "printf '[core]\\n\\tfsmonitor = @W@/p\\n' >{0}"
for what, setup, plant in [
        ("the first of two include.path", "git config --add include.path @W@/one; git config --add include.path @W@/two", FSM.format("one")),
        ("the second of two include.path", "git config --add include.path @W@/one; git config --add include.path @W@/two", FSM.format("two")),
        ("a relative include.path", "git config include.path ../conf/x; mkdir conf", FSM.format("conf/x")),
        ("includeIf", "git config includeIf.gitdir:@W@/.path ../x", FSM.format("x")),
        ("includeIf onbranch that does not hold yet", "git config includeIf.onbranch:later.path ../x", FSM.format("x")),
        ("an include in an include", "git config include.path ../x; printf '[include]\\n path = y/z\\n' >x", "mkdir -p y; " + FSM.format("y/z")),
        ("an include of the home", "git config --global include.path @W@/x", FSM.format("x")),
        ("core.hooksPath of the home", "git config --global core.hooksPath @W@/hk", "mkdir -p hk; " + run("hk/post-checkout")),
        ("core.hooksPath, relative and not there yet", "git config core.hooksPath tools/hooks", "mkdir -p tools/hooks; " + run("tools/hooks/post-checkout")),
        ("core.hooksPath by a link", "mkdir -p real; ln -s real lk; git config core.hooksPath lk", run("real/post-checkout")),
        ("core.hooksPath, the link changed", "mkdir -p real; ln -s real lk; git config core.hooksPath lk", "mkdir other; " + run("other/post-checkout") + "; rm lk; ln -s other lk"),
        ("core.hooksPath, a directory above replaced by a link", "mkdir -p a/b; git config core.hooksPath a/b", "mkdir -p c/b; " + run("c/b/post-checkout") + "; rm -r a; ln -s c a"),
        ("core.hooksPath with ~ and quotes", "git config core.hooksPath '~/in'; ln -s @W@/inside ~/in; mkdir inside", run("inside/post-checkout")),
        ("core.fsmonitor, a script of the tree", "mkdir tools; git config core.fsmonitor tools/x", run("tools/x")),
        ("core.fsmonitor by an interpreter", "git config core.fsmonitor 'sh fsm'", run("fsm")),
        ("filter.z.clean, a script of the tree", "mkdir tools; git config filter.z.clean tools/x; echo '* filter=z' >.gitattributes", run("tools/x")),
        ("filter.z.clean with an absolute path", "git config filter.z.clean '@W@/x %f'; echo '* filter=z' >.gitattributes", run("x")),
        ("diff.external, a script of the tree", "git config diff.external ./x", run("x")),
        ("an alias that runs a script of the tree", "git config alias.st '!./tools/st'; mkdir tools", run("tools/st")),
        ("one hook that is a link into the tree", "mkdir tools; : >tools/x; chmod +x tools/x; ln -s ../../tools/x .git/hooks/post-checkout", run("tools/x")),
        ("a hooks directory that is a link into the tree", "mkdir tools; rm -r .git/hooks; ln -s ../tools .git/hooks", run("tools/post-checkout")),
        ("core.attributesFile in the tree", "git config core.attributesFile @W@/att; git config filter.z.clean \"sh -c 'touch @M@; cat'\"", "echo '* filter=z' >att"),
        ("init.templateDir in the tree", "git config --global init.templateDir @W@/tpl; mkdir tpl", "mkdir -p tpl/hooks; " + run("tpl/hooks/post-commit")),
]:
    row(f"the host's configuration: {what} (W1b)", "held", REPO + "; " + setup, (run("p") + "; " if "fsmonitor = @W@/p" in plant else "") + plant,
        "touch f; echo b >>f; git status; git diff; git st; git add f; git checkout -q -b z; git checkout -q -b later; touch f; git status; git init -q ../n; cd ../n; git commit -q --allow-empty -m n")
row("a submodule's configuration points into the tree (W1b)", "held", "git init -q -b main ../s; git -C ../s commit -q --allow-empty -m s; " + REPO + "; git -c protocol.file.allow=always submodule -q add ../s sub; git -C sub config core.hooksPath @W@/hk",
    "mkdir hk; " + run("hk/post-checkout"), "git -C sub checkout -q -b z")
row("a linked worktree's configuration points into the tree (W1b)", "held", REPO + "; git config extensions.worktreeConfig true; git worktree add -q ../wt; git -C ../wt config --worktree core.hooksPath @W@/hk", "mkdir hk; " + run("hk/post-checkout"), "cd ../wt; git checkout -q -b z")

# ---- git: repositories beneath the workspace, and what the host's hooks call (W1b) ----
NESTED = "mkdir proj; cd proj; " + REPO
CHECKOUT = "cd proj; git checkout -q -b z"
row("a repository beneath: core.hooksPath (W1b)", "held", NESTED + "; git config core.hooksPath tools/hooks", "mkdir -p proj/tools/hooks; " + run("proj/tools/hooks/post-checkout"), CHECKOUT)
row("a repository beneath: a hook that is a link out of it (W1b)", "held", NESTED + "; ln -s ../../t2/x .git/hooks/post-checkout", "mkdir -p proj/t2; " + run("proj/t2/x"), CHECKOUT)
row("a repository beneath: core.hooksPath in another one (W1b)", "held", REPO + "; mkdir tools v; cd v; " + REPO + "; git config core.hooksPath ../tools", run("tools/post-checkout"), "cd v; git checkout -q -b z")
row("the seventieth repository beneath (W1b)", "held", "for i in $(seq 69); do mkdir -p $i/.git/objects $i/.git/refs; echo 'ref: refs/heads/main' >$i/.git/HEAD; done; mkdir z; cd z; " + REPO + "; git config core.hooksPath ../tools; git config --global alias.st '!./w'", "mkdir tools; " + run("tools/post-checkout") + "; " + run("z/w"), "cd z; git st; git checkout -q -b z")
row("a bare repository beneath: core.hooksPath (W1b)", "held", REPO + "; mkdir s; git init -q --bare s/b.git; git -C s/b.git config core.hooksPath ../../tools", "mkdir tools; " + run("tools/post-update"), "git push -q s/b.git main")
for what, setup, plant in [
        ("a value with cd", "git config core.fsmonitor 'cd tools && ./fsm'", "mkdir tools; " + run("tools/fsm")),
        ("a value with two of cd", "git config core.fsmonitor 'cd a && cd b && ./fsm'", "mkdir -p a/b; " + run("a/b/fsm")),
        ("a value with cd and an interpreter", "git config core.fsmonitor 'cd tools; sh fsm'", "mkdir tools; " + run("tools/fsm")),
        ("a script that a value calls calls another", "mkdir tools; printf '#!/bin/sh\n. tools/lib\n' >tools/fsm; chmod +x tools/fsm; git config core.fsmonitor tools/fsm", "mkdir -p tools; " + run("tools/lib")),
        ("a hook calls a script", "printf '#!/bin/sh\n./scripts/lint\n' >.git/hooks/post-checkout", "mkdir scripts; " + run("scripts/lint")),
        ("a hook calls a script by a variable", "printf '#!/bin/sh\nR=$(git rev-parse --show-toplevel)\n$R/scripts/lint\n' >.git/hooks/post-checkout", "mkdir scripts; " + run("scripts/lint")),
        ("a hook calls a script after cd", "printf '#!/bin/sh\ncd scripts\nif ./lint; then :; fi\n' >.git/hooks/post-checkout", "mkdir scripts; " + run("scripts/lint")),
        ("a hook gives a script to an interpreter", "printf '#!/bin/sh\nexec sh lint\n' >.git/hooks/post-checkout", run("lint")),
        ("a hook continues a line", "printf '#!/bin/sh\nsh \\\\\n  lint\n' >.git/hooks/post-checkout", run("lint")),
        ("a hook runs all of a directory", "mkdir scripts; printf '#!/bin/sh\nfor x in scripts/*; do \"$x\"; done\n' >.git/hooks/post-checkout", run("scripts/lint")),
        ("a hook in a directory of hooks sources a file", "mkdir -p ../gh; printf '#!/bin/sh\n. \"$(git rev-parse --show-toplevel)/lib/x\"\n' >../gh/post-checkout; chmod +x ../gh/post-checkout; git config --global core.hooksPath @W@/../gh", "mkdir lib; " + run("lib/x")),
        ("a hook of the tree sources a file beside it", "mkdir -p tools/hooks; printf '#!/bin/sh\n. \"$(dirname \"$0\")/../lib/x\"\n' >tools/hooks/post-checkout; git config core.hooksPath tools/hooks; chmod +x tools/hooks/post-checkout", "mkdir tools/lib; " + run("tools/lib/x")),
        ("a hook calls a script that sources another", "mkdir scripts; printf '#!/bin/sh\nscripts/lint\n' >.git/hooks/post-checkout; printf '#!/bin/sh\n. scripts/common.sh\n' >scripts/lint; chmod +x scripts/lint", "mkdir -p scripts; " + run("scripts/common.sh")),
]:
    row(f"the host's hooks: {what} (W1b)", "held", REPO + "; " + setup + "; chmod -f +x .git/hooks/post-checkout", plant, "touch f; git status; git checkout -q -b z")
row("a file that a hook only looks at", "what a hook checks is not what it runs", REPO + "; mkdir src; echo a >src/a.c; printf '#!/bin/sh\ngrep -r TODO src\nls src/*.c\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "echo b >src/a.c")

# ---- git: names that the programs of the host's configuration and hooks look up by themselves ----
PY = "echo 'open(\"@M@\", \"w\")' >{0}"
COMMIT = "git commit -q --allow-empty -m y"
for what, setup, plant in [
        ("pre-commit's own hook, pre_commit.py", "python3 -mpre_commit", PY.format("pre_commit.py")),
        ("pre-commit's own hook, pre_commit/__main__.py", "python3 -mpre_commit", "mkdir pre_commit; " + PY.format("pre_commit/__main__.py")),
        ("a hook runs a module, a standard one replaced", "python3 -m json.tool </dev/null", PY.format("argparse.py")),
        ("a hook runs python's code, a standard package replaced", "python3 -c 'import json'", "mkdir json; " + PY.format("json/__init__.py")),
        ("a hook runs python by a variable", "P=python3\nexec \"$P\" -m tools.lint", "mkdir tools; " + PY.format("tools/lint.py")),
        ("a hook runs python's script, a module beside it", "python3 tools/lint.py", PY.format("tools/used.py")),
        ("a hook runs a script of python, a module beside it", "tools/lint", PY.format("tools/used.py")),
        ("a hook names directories for python", "PYTHONPATH=lib python3 -c 1", "mkdir lib; " + PY.format("lib/sitecustomize.py")),
        ("a hook names a directory by a variable", "D=scripts\n. \"$D/x\"", "mkdir scripts; echo 'touch @M@' >scripts/x"),
        ("a hook runs make", "make lint", "printf 'lint:\n\ttouch @M@\n' >Makefile"),
        ("a hook runs make in a directory", "make -C sub lint", "mkdir sub; printf 'lint:\n\ttouch @M@\n' >sub/GNUmakefile"),
        ("a hook runs npm", "npm test", "printf '{\"scripts\":{\"test\":\"touch @M@\"}}' >package.json"),
        ("a hook runs npx", "npx --no-install lint", "mkdir -p node_modules/.bin; " + run("node_modules/.bin/lint")),
        ("a hook runs node, no extension", "node tools/clean", "mkdir tools; echo 'require(\"fs\").writeFileSync(\"@M@\", \"\")' >tools/clean.js"),
        ("a hook makes node load a file", "node -r ./tools/clean -e 1", "mkdir tools; echo 'require(\"fs\").writeFileSync(\"@M@\", \"\")' >tools/clean.cjs; cp tools/clean.cjs tools/clean.js"),
        ("a hook makes ruby load a file", "ruby -r./tools/clean -e 1", "mkdir tools; echo 'File.write(\"@M@\", \"\")' >tools/clean.rb"),
        ("a hook makes perl load a module", "perl -Ilib -MFoo -e 1", "mkdir lib; echo 'open(F, \">\", \"@M@\"); 1' >lib/Foo.pm"),
]:
    scripts = "; mkdir tools; echo 'import used' >tools/lint.py; { echo '#!/usr/bin/env python3'; echo 'import used'; } >tools/lint; chmod +x tools/lint; : >tools/used.py" if "beside" in what else ""
    scripts += "; mkdir scripts" if "names a directory by" in what else ""
    row(f"the host's hooks: {what}", "held", REPO + scripts + "; cat >.git/hooks/pre-commit <<'END'\n#!/bin/sh\n" + setup.replace("\\n", "\n") + "\nEND\nchmod +x .git/hooks/pre-commit", plant.replace("mkdir ", "mkdir -p "), COMMIT)
JS = "echo 'import {writeFileSync as w} from \"fs\"; w(\"@M@\", \"\")' >tools/used.mjs"
for what, setup, script, plant in [  # of a script that the hook runs
        ("a module of JavaScript", "node tools/x.mjs", "import './used.mjs';", JS),
        ("names from a module of JavaScript", "node tools/x.mjs", "export * from \"./used.mjs\"", JS),
        ("a module of JavaScript, when it needs it", "node tools/x.mjs", "await import(\"./used.mjs\")", JS),
        ("a part of a makefile", "make -s -f tools/x.mjs", "include tools/used.mk", "printf 'all:\n\ttouch @M@\n' >tools/used.mk"),
        ("a further part of a makefile", "make -s -f tools/x.mjs", "-include tools/none.mk tools/used.mk", "printf 'all:\n\ttouch @M@\n' >tools/used.mk"),
        ("a file of ruby, no extension", "ruby tools/x.mjs", "require_relative \"./used\"", "echo 'File.write(\"@M@\", \"\")' >tools/used.rb"),
]:
    row(f"the host's hooks: a script takes in {what}", "held", REPO + f"; mkdir tools; : >tools/used.mjs; : >tools/used.mk; : >tools/used.rb; cat >tools/x.mjs <<'END'\n{script}\nEND\n" +
        f"printf '#!/bin/sh\n{setup}\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", plant, COMMIT)
row("what a script's comment says it came from", "prose in a script is not what it runs", REPO + "; mkdir tools src; echo '// taken from src, which we include' >tools/x.mjs; printf '#!/bin/sh\nnode tools/x.mjs\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "echo 1 >src/new.js")
for what, value, plant in [
        ("nbstripout.py", "python3 -m nbstripout", PY.format("nbstripout.py")),
        ("a package's module", "python3 -m tools.clean", "mkdir tools; " + PY.format("tools/clean.py")),
        ("directories for python", "PYTHONPATH=lib python3 -c 1", "mkdir lib; " + PY.format("lib/sitecustomize.py")),
        ("a script of python", "python3 tools/clean.py", "mkdir tools; " + PY.format("tools/clean.py")),
        ("a makefile", "make -s -f Mk", "printf 'all:\n\ttouch @M@\n' >Mk"),
        ("perl's modules", "perl -Ilib -MFoo -pe 1", "mkdir lib; echo 'open(F, \">\", \"@M@\"); 1' >lib/Foo.pm"),
]:
    row(f"the host's configuration: {what}, by its name", "held", REPO + f"; git config filter.z.clean '{value}'; echo '* filter=z' >.git/info/attributes", plant, "echo b >f; git add f")
row("a module that python already had", "what the host's hook could import before is not a new name", REPO + "; echo 1 >app.py; printf '#!/bin/sh\nexec python3 -mpre_commit\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "echo 2 >app.py")
row("a text that a hook prints", "what a hook prints is not what it runs", REPO + "; printf '#!/bin/sh\necho make sure that npx works\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "echo all: >Makefile")

# ---- links in the place of directories that begin a pattern (W1c) ----
row(".git/info as a link (W1c)", "held", REPO + "; git config filter.z.clean \"sh -c 'touch @M@; cat'\"", "mkdir inf; echo '* filter=z' >inf/attributes; rm -rf .git/info; ln -s ../inf .git/info", "echo b >f; git add f")
row(".cargo as a link (W1c)", "held", "mkdir src; echo 'fn main(){}' >src/main.rs; printf '[package]\\nname=\"x\"\\nversion=\"0.1.0\"\\n' >Cargo.toml", run("p") + "; mkdir c; printf '[build]\\nrustc-wrapper = \"@W@/p\"\\n' >c/config.toml; ln -s c .cargo", "cargo build --offline")
for name in [".config", ".yarn", ".github", "CVS", ".julia"]:
    row(f"{name} as a link (W1c)", "held", "", f"mkdir x; ln -s x {name}")
row("a link to .git/hooks", "held", REPO, "ln -s .git/hooks h")
row("a link to .vscode", "held", "mkdir .vscode", "ln -s .vscode v")

# ---- other version control systems (W1d) ----
row("hg: .hg/hgrc hooks (W1d)", "held", "hg init", "printf '[hooks]\\nprecommit = touch @M@\\n' >.hg/hgrc", "echo a >a; hg add a; hg commit -u x -m x")
row("hg: an alias (W1d)", "held", "hg init", "printf '[alias]\\nstatus = !touch @M@\\n' >.hg/hgrc", "hg status")
row("hg: an extension (W1d)", "held", "hg init", "echo 'open(\"@M@\", \"w\")' >e.py; printf '[extensions]\\ne = @W@/e.py\\n' >.hg/hgrc", "hg status")
row("hg: a new repository (W1d)", "held", "", "mkdir -p .hg/store; echo store >.hg/requires; printf '[alias]\\nstatus = !touch @M@\\n' >.hg/hgrc", "hg status")
row("hg: a shared repository (W1d)", "held", "hg init; mkdir -p o/.hg", "mkdir -p o2; echo shared >>.hg/requires; echo @W@/o2 >.hg/sharedpath")
row("hg: .hg replaced by a link (W1d)", "held", "", "mkdir -p x/store; : >x/requires; printf '[alias]\\nstatus = !touch @M@\\n' >x/hgrc; ln -s x .hg", "hg status")
row("darcs: _darcs/prefs/defaults (W1d)", "held", "darcs init -q", "echo 'ALL prehook touch @M@' >_darcs/prefs/defaults; echo 'ALL run-prehook' >>_darcs/prefs/defaults", "echo a >a; darcs add -q a; darcs record -q -A x -a -m x")
row("cvs: CVS/Root (W1d)", "held", "", "mkdir CVS; " + run("p") + "; echo ':ext;CVS_RSH=@W@/p:h:/x' >CVS/Root; echo . >CVS/Repository; : >CVS/Entries", "CVS_RSH=@W@/p cvs -q update")
row("fossil: .fslckout (W1d)", "held", "", "echo x >.fslckout")
for path in [".sl/config", ".jj/repo/config.toml", ".jj/repo/store/git_target", ".bzr/branch/branch.conf", ".pijul/config", ".fossil-settings/th1-setup", ".repo/repo/main.py", "CVSROOT/loginfo", ".arcconfig", ".hgsub"]:
    row(f"{path} (W1d)", "held", "", f"mkdir -p {path.rsplit('/', 1)[0] if '/' in path else '.'}; echo x >{path}")

# ---- shells, with the workspace as home ----
for shell, name, trigger in [("bash", ".bashrc", "HOME=@W@ bash -i -c true"), ("bash", ".bash_profile", "HOME=@W@ bash -l -c true"), ("bash", ".bash_login", "HOME=@W@ bash -l -c true"), ("bash", ".profile", "HOME=@W@ bash -l -c true"),
                             ("bash", ".bash_logout", "HOME=@W@ bash -l -c exit"), ("zsh", ".zshenv", "HOME=@W@ zsh -c true"), ("zsh", ".zshrc", "HOME=@W@ zsh -i -c true"), ("zsh", ".zprofile", "HOME=@W@ zsh -l -c true"), ("zsh", ".zlogin", "HOME=@W@ zsh -l -c true"),
                             ("tcsh", ".tcshrc", "HOME=@W@ tcsh -c true"), ("tcsh", ".cshrc", "HOME=@W@ tcsh -c true"), ("tcsh", ".login", None), ("mksh", ".mkshrc", "HOME=@W@ mksh -i -c true"), ("ksh", ".kshrc", None), ("zsh", ".zlogout", None), ("bash", ".bash_aliases", None), ("readline", ".inputrc", None)]:
    row(f"{shell}: {name}", "held", "", f"echo 'touch @M@' >{name}", trigger)
row("fish: .config/fish/config.fish", "held", "", "mkdir -p .config/fish; echo 'touch @M@' >.config/fish/config.fish", "HOME=@W@ XDG_CONFIG_HOME= fish -c true")
row("fish: .config/fish/conf.d", "held", "", "mkdir -p .config/fish/conf.d; echo 'touch @M@' >.config/fish/conf.d/x.fish", "HOME=@W@ XDG_CONFIG_HOME= fish -c true")
row("direnv: .envrc", "held", "", "echo 'touch @M@' >.envrc", "direnv allow .; direnv exec . true")

# ---- tools that read commands from the current directory ----
row("gdb: .gdbinit", "held", "", "echo 'shell touch @M@' >.gdbinit", "gdb -q -batch -iex 'set auto-load safe-path /' -ex quit")
row("gdb: .gdbearlyinit (W1d)", "held", "", "echo 'shell touch @M@' >.gdbearlyinit")
row("perl -d: .perldb", "held", "echo 1 >x.pl", "echo 'system \"touch @M@\";' >.perldb; chmod 600 .perldb", "chmod 600 .perldb; HOME=@W@ PERLDB_OPTS='NonStop=1 noTTY' perl -d x.pl")
row("pdb: .pdbrc", "held", "echo 'pass' >x.py", "echo '!import os; os.system(\"touch @M@\")' >.pdbrc", "echo c | python3 -m pdb x.py")
row("irb: .irbrc", "held", "", "echo 'system(\"touch @M@\")' >.irbrc", "echo exit | HOME=@W@ irb")
row("sqlite3: .sqliterc", "held", "", "echo '.shell touch @M@' >.sqliterc")
row("psql: .psqlrc", "held", "", "echo '\\! touch @M@' >.psqlrc")
row("tmux: .tmux.conf", "held", "", "echo 'run-shell \"touch @M@\"' >.tmux.conf", "HOME=@W@ TMUX= tmux -L hutch$$ new-session -d true; sleep 0.3; HOME=@W@ tmux -L hutch$$ kill-server")
row("screen: .screenrc", "held", "", "echo 'screen touch @M@' >.screenrc", "HOME=@W@ SCREENDIR=@W@/../s timeout 2 screen -D -m -S hutch sleep 0.5")
row("vim: .exrc", "held", "", "echo '!touch @M@' >.exrc", "vim -es -u NONE --cmd 'set exrc' -c 'source .exrc' -c q")
row("vim: .vimrc", "held", "", "echo 'call system(\"touch @M@\")' >.vimrc", "HOME=@W@ vim -es -u .vimrc -c q </dev/null; HOME=@W@ timeout 5 vim -T dumb -c q </dev/null")
row("npm: .npmrc script-shell", "held", "echo '{\"scripts\":{\"x\":\"true\"}}' >package.json", run("p") + "; echo 'script-shell=@W@/p' >.npmrc", "npm run x")
row("npm: .npmrc git", "held", "", run("p") + "; echo 'git=@W@/p' >.npmrc", "npm install --offline --no-audit git+ssh://git@localhost/a/b.git")
row("yarn: .yarnrc.yml yarnPath", "held", "", "echo 'yarnPath: ./x.js' >.yarnrc.yml")
row("yarn: .yarn/releases (W1d)", "held", "", "mkdir -p .yarn/releases; echo x >.yarn/releases/yarn.cjs")
row("cargo: .cargo/config.toml", "held", "mkdir src; echo 'fn main(){}' >src/main.rs; printf '[package]\\nname=\"x\"\\nversion=\"0.1.0\"\\n' >Cargo.toml", run("p") + "; mkdir .cargo; printf '[build]\\nrustc-wrapper = \"@W@/p\"\\n' >.cargo/config.toml", "cargo build --offline")
row("cargo: .cargo/config", "held", "mkdir src; echo 'fn main(){}' >src/main.rs; printf '[package]\\nname=\"x\"\\nversion=\"0.1.0\"\\n' >Cargo.toml", run("p") + "; mkdir .cargo; printf '[build]\\nrustc = \"@W@/p\"\\n' >.cargo/config", "cargo build --offline")
row("maven: .mvn/jvm.config (W1d)", "held", "", "mkdir .mvn; echo '-XX:OnError=x' >.mvn/jvm.config")
for tool, path in [("R", ".Rprofile"), ("R", ".Renviron"), ("ghci", ".ghci"), ("iex", ".iex.exs"), ("ocaml", ".ocamlinit"), ("octave", ".octaverc"), ("lldb", ".lldbinit"), ("pry", ".pryrc"), ("rustup", "rust-toolchain.toml"), ("rustup", "rust-toolchain"), ("pnpm", ".pnpmfile.cjs"),
                   ("pnpm", ".pnpmfile.mjs"), ("bun", "bunfig.toml"), ("yarn", ".yarnrc"), ("mise", "mise.toml"), ("mise", ".mise.toml"), ("mise", "mise.local.toml"), ("mise", ".config/mise/config.toml"), ("bazel", ".bazelrc"),
                   ("bundler", ".bundle/config"), ("ansible", "ansible.cfg"), ("gradle", ".gradle/init.gradle"), ("uv", "uv.toml"), ("valgrind", ".valgrindrc"), ("guile", ".guile"), ("sbcl", ".sbclrc"), ("tig", ".tigrc"), ("ssh", ".ssh/config"), ("gpg", ".gnupg/gpg.conf"),
                   ("desktop", ".config/autostart/x.desktop"), ("systemd", ".config/systemd/user/x.service"), ("X11", ".xinitrc"),
                   # editors
                   ("Visual Studio Code", ".vscode/tasks.json"), ("Visual Studio Code", "x.code-workspace"), ("JetBrains", ".idea/workspace.xml"), ("Helix", ".helix/languages.toml"), ("Zed", ".zed/tasks.json"), ("Neovim", ".nvim.lua"), ("Neovim", ".nvimrc"), ("Emacs", ".dir-locals.el"),
                   ("Emacs", ".emacs.d/init.el"), ("Kakoune", ".kakrc"), ("Sublime Text", "x.sublime-project"), ("dev containers", ".devcontainer/devcontainer.json"), ("YouCompleteMe", ".ycm_extra_conf.py"), ("vimspector", ".vimspector.json"),
                   # agents
                   ("Claude Code", ".claude/settings.json"), ("Claude Code", ".mcp.json"), ("Codex", ".codex/config.toml"), ("Gemini", ".gemini/settings.json"), ("Cursor", ".cursor/mcp.json"), ("Windsurf", ".windsurf/x"), ("opencode", "opencode.json"), ("opencode", "opencode.jsonc"),
                   ("opencode", ".opencode/plugin/x.js"), ("Crush", "crush.json"), ("Crush", ".crush.json"), ("Kiro", ".kiro/hooks/x.json"), ("Amazon Q", ".amazonq/mcp.json"), ("Qwen Code", ".qwen/settings.json"), ("Junie", ".junie/x"), ("OpenHands", ".openhands/setup.sh"), ("aider", ".aider.conf.yml"),
                   ("pi", ".pi/settings.json"), ("CodeBuddy", ".codebuddy/settings.json"), ("iFlow", ".iflow/settings.json"), ("clojure-lsp", ".lsp/config.edn"), ("Haskell language server", "hie.yaml"), ("OmniSharp", "omnisharp.json"), ("Merlin", ".merlin"), ("Solargraph", ".solargraph.yml"), ("rbenv", ".rbenv-vars"), ("pdb", ".pdbrc.py"), ("Roo", ".roo/mcp.json"), ("Cline", ".cline/x"), ("Continue", ".continue/config.json"), ("hutch", ".jail"), ("hutch", "hutch.yaml"),
                   # hooks kept in the tree
                   ("husky", ".husky/pre-commit"), ("lefthook", "lefthook.yml"), ("lefthook", ".lefthook.toml"), ("lefthook", "lefthook.json"), ("lefthook", ".config/lefthook.yml"), ("lefthook", "lefthook-local.yaml"), ("pre-commit", ".pre-commit-config.yaml"), ("overcommit", ".overcommit.yml")]:
    row(f"{tool}: {path}", "held", "", f"mkdir -p {path.rsplit('/', 1)[0] if '/' in path else '.'}; echo x >{path}")

# ---- files that version control reads for itself ----
RR = """h=1111111111111111111111111111111111111111; mkdir -p .git/rr-cache/$h; cp {0} .git/rr-cache/$h/preimage; cp {0} .git/rr-cache/$h/postimage
printf '{1}' >>.git/rr-cache/$h/postimage; printf '%s.-1\\t{0}\\0' $h >.git/MERGE_RR"""
row("git: MERGE_RR, the configuration written by the next commit", "held", REPO, RR.format(".git/config", "[core]\\n\\tfsmonitor = touch @M@; false\\n"), "echo b >f; git commit -qam y; git status")
row("git: MERGE_RR, a hook", "held", REPO + "; printf '#!/bin/sh\\n:\\n' >.git/hooks/post-commit; chmod +x .git/hooks/post-commit", RR.format(".git/hooks/post-commit", "touch @M@\\n"), "echo b >f; git commit -qam y; echo c >f; git commit -qam z")
row("git: rr-cache alone turns rerere on", "held", REPO, "mkdir -p .git/rr-cache/1111111111111111111111111111111111111111; echo a >.git/rr-cache/1111111111111111111111111111111111111111/postimage")
for name in ("START", "NAMES", "LOG", "TERMS"):
    row(f"git: BISECT_{name}, which git before 2.39 hands to a shell or takes for options", "held", REPO, f"echo '; touch @M@' >.git/BISECT_{name}")
OBJECT = """python3 -c '
import glob, os, subprocess, zlib
oid = subprocess.check_output(["git", "rev-parse", "HEAD:x.sh"], text=True).strip()
path = ".git/objects/" + oid[:2] + "/" + oid[2:]
data = b"touch @M@\\n"
os.unlink(path)
open(path, "wb").write(zlib.compress(b"blob %d\\0" % len(data) + data))'"""
row("git: an object of the host with other content", "held", REPO + "; echo : >x.sh; git add x.sh; git commit -qm x", OBJECT, "rm x.sh; git checkout -q HEAD -- x.sh; sh x.sh")
HG = "cd .hg; printf '[alias]\\nstatus = !touch @M@\\n' >store/rc; "
row("hg: an abandoned transaction", "held", "hg init; echo a >a; hg add a; hg commit -u x -m x", HG + "printf '00changelog.i\\0%s\\n' $(stat -c %s store/00changelog.i) >store/journal; printf '2\\nplain\\0hgrc\\0store/rc\\0000\\n' >store/journal.backupfiles", "hg recover; hg status")
row("hg: the way back of the last transaction", "held", "hg init; echo a >a; hg add a; hg commit -u x -m x", HG + "printf '2\\nplain\\0hgrc\\0store/rc\\0000\\n' >store/undo.backupfiles", "hg rollback; hg status")
row("hg: a way back that truncates", "held", "hg init; echo a >a; hg add a; hg commit -u x -m x", "printf '../../a\\0000\\n' >.hg/store/undo")
row("hg: a commit, with its way back", "what hg writes itself is taken", "hg init; echo a >a; hg add a; hg commit -u x -m x; hg bookmark k", "echo b >>a; hg commit -u x -m y; hg bookmark l")

# ---- what the host's own files of hooks and directories name ----
HUSKY = REPO + """; mkdir -p .husky/_; git config core.hooksPath .husky/_; printf '#!/bin/sh\\n. "${0%%/*}/h"' >.husky/_/pre-commit; chmod +x .husky/_/pre-commit
cat >.husky/_/h <<'END'
s=$(dirname "$(dirname "$0")")/$(basename "$0")
export PATH="node_modules/.bin:$PATH"
sh -e "$s" "$@"
END
printf '%s\\n' 'node scripts/check' 'npx lint-staged' >.husky/pre-commit"""
row("husky: a script that its hook runs", "held", HUSKY, "mkdir scripts; echo 'require(\"fs\").writeFileSync(\"@M@\", \"\")' >scripts/check.js", COMMIT)
row("husky: a program before the system's", "held", HUSKY, "mkdir -p node_modules/.bin; " + run("node_modules/.bin/node"), COMMIT)
ENTRY = "; printf '#!/bin/sh\\nsh -c \"$(sed -n s/.*entry:.//p .pre-commit-config.yaml)\"\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
PC = REPO + "; printf '%s\\n' 'exclude: docs/conf.py' 'repos:' '- repo: local' '  hooks:' '  - id: x' '    entry: {0}' >.pre-commit-config.yaml" + ENTRY
row("pre-commit: the script of a local hook", "held", PC.format("./tools/lint.sh") + "; mkdir tools; echo : >tools/lint.sh; chmod +x tools/lint.sh", "echo 'touch @M@' >>tools/lint.sh", COMMIT)
row("pre-commit: a script for python", "held", PC.format("python3 tools/lint.py") + "; mkdir tools; echo >tools/lint.py", PY.format("tools/lint.py"), COMMIT)
row("pre-commit: a file that its hooks leave out", "what hooks look at is not what they run", PC.format("true"), "mkdir docs; echo 1 >docs/conf.py")
row("lefthook: the script of a command", "held", REPO + "; mkdir tools; echo : >tools/l; printf '%s\\n' 'pre-commit:' '  commands:' '    l:' '      glob: src/a.c' '      run: sh tools/l' >lefthook.yml", "echo 'touch @M@' >>tools/l")
row("lefthook: a file that its commands look at", "what hooks look at is not what they run", REPO + "; printf '%s\\n' 'pre-commit:' '  commands:' '    l:' '      glob: src/a.c' '      run: true' >lefthook.yml", "mkdir src; echo 1 >src/a.c")
for name in (".lintstagedrc", ".lintstagedrc.json", "lint-staged.config.mjs", ".commitlintrc.yml", "commitlint.config.js"):
    row(f"what a commit hook reads: {name}", "held", "", f"echo x >{name}")
ENVRC = "printf '%s\\n' '{0}' >.envrc; direnv allow ."
IN = "direnv exec . {0}"
for what, text, plant, trigger in [
        ("a file that it sources if there is one", "source_env_if_exists .envrc.local", "echo 'touch @M@' >.envrc.local", IN.format("true")),
        ("a file with another name", "source_env_if_exists local.rc", "echo 'touch @M@' >local.rc", IN.format("true")),
        ("its variables", "dotenv_if_exists", "printf '%s\\n' 'touch @M@' >e; echo 'BASH_ENV=@W@/e' >.env", IN.format("bash -c true")),
        ("a directory of PATH", "PATH_add tools", "mkdir tools; " + run("tools/ls"), IN.format("ls")),
        ("node's programs", "layout node", "mkdir -p node_modules/.bin; " + run("node_modules/.bin/ls"), IN.format("ls")),
        ("its own directory", "watch_file x; PATH_add .direnv/bin", "mkdir -p .direnv/bin; " + run(".direnv/bin/ls"), IN.format("ls")),
        ("a script that it runs", "eval \"$(sh ./env.sh)\"", "echo 'touch @M@' >env.sh", IN.format("true")),
        ("nix", "use flake", "echo x >flake.nix", None)]:
    row(f"direnv: {what}", "held", ENVRC.format(text), plant, trigger)
row("direnv: that of a directory beneath", "held", "mkdir sub; printf 'PATH_add tools\\n' >sub/.envrc; direnv allow sub", "mkdir sub/tools; " + run("sub/tools/ls"), "direnv exec sub ls")
row("direnv: that of a directory behind very many others", "held", "mkdir -p a z/y; cd a; seq 31000 | xargs touch; cd ..; printf 'PATH_add tools\\n' >z/y/.envrc", "mkdir z/y/tools; echo x >z/y/tools/ls")
row("a directory of the home in a hook's PATH", "it is none of the workspace", REPO + "; printf '#!/bin/sh\\nPATH=$HOME/bin:$PATH\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "mkdir bin; echo 1 >bin/x")
row("direnv: a file that it only watches", "what is watched is not run", ENVRC.format("watch_file package.json"), "echo 1 >package.json")
for path, text in [(".tool-versions", "node path:./x"), (".tool-versions", "python 3.11\\nnode path:/tmp/x # y"), (".ruby-version", "../../x"), (".java-version", "/x"), (".sdkmanrc", "java=../../x"), (".node-version", "./x")]:
    row(f"a version that is a path: {path} {text.split()[-1]}", "held", "", f"printf '{text}\\n' >{path}")
for path, text in [(".tool-versions", "nodejs 20.1.0\\npython 3.11.2 system # ../x\\nx ref:v1.2"), (".nvmrc", "lts/hydrogen"), (".sdkmanrc", "java=17.0.5-tem"), (".go-version", "1.22")]:
    row(f"a version: {path} {text.split()[0]}", "noticed", "", f"printf '{text}\\n' >{path}")
for path in (".env", ".env.local", ".prettierrc", ".eslintrc", "mypy.ini", ".flake8", "global.json", "tailwind.config.js", ".roomodes"):
    row(f"settings: {path}", "noticed", "", f"echo x >{path}")
for tool, path in [("R", ".RData"), ("Emacs", ".emacs.desktop"), ("rust-analyzer", "rust-analyzer.toml"), ("Eclipse", ".factorypath"), ("Eclipse", ".settings/x.prefs"), ("Matlab", "startup.m"), ("mise", ".miserc.toml"), ("pdm", ".pdm-python"),
                   ("Midnight Commander", ".mc.menu"), ("gptme", "gptme.toml"), ("Vibe", ".vibe/config.toml"), ("Grok", ".grok/settings.json"), ("Claude Code", ".claude-plugin/plugin.json"), ("Warp", ".warp/workflows/x.yaml"),
                   ("tern", ".tern-project"), ("projectionist", ".projections.json")]:
    row(f"{tool}: {path}", "held", "", f"mkdir -p {path.rsplit('/', 1)[0] if '/' in path else '.'}; echo x >{path}")

# ---- the rest of the class ----
T = "touch @M@"
for tool, path, text, trigger in [
        ("less", ".lesskey", "#env\nLESSOPEN=|@W@/p %s\n", "echo a >a; HOME=@W@ script -qec 'less -E a' /dev/null"), ("less", ".config/lesskey", "#env\nLESSOPEN=|@W@/p %s\n", None),
        ("select-editor", ".selected_editor", T, "HOME=@W@ EDITOR= VISUAL= sensible-editor a"), ("cargo's shell file", ".cargo/env", T, None), ("irb", "irb.rc", "system '" + T + "'", "echo exit | irb"), ("irb", "_irbrc", "system '" + T + "'", "echo exit | irb"),
        ("irb", "$irbrc", "system '" + T + "'", "echo exit | irb"), ("irb", ".config/irb/irbrc", "system '" + T + "'", "echo exit | HOME=@W@ XDG_CONFIG_HOME=@W@/.config irb"), ("pylint", ".pylintrc", "[MAIN]\ninit-hook=import os; os.system('" + T + "')\n", "echo 1 >x.py; pylint x.py"),
        ("pylint", "pylintrc", "[MAIN]\ninit-hook=import os; os.system('" + T + "')\n", "echo 1 >x.py; pylint x.py"), ("vim", ".config/vim/vimrc", "call system('" + T + "')", None), ("yash", ".yashrc", T, "HOME=@W@ yash -i -c true"), ("yash", ".yash_profile", T, "HOME=@W@ yash -l -c true"),
        ("lftp", ".lftprc", "!" + T, "HOME=@W@ lftp -c 'echo'"), ("lftp", ".config/lftp/rc", "!" + T, "HOME=@W@ lftp -c 'echo'"), ("mutt", ".muttrc", "set from=`" + T + "`", "HOME=@W@ mutt -Q from"), ("mutt", ".mutt/muttrc", "set from=`" + T + "`", "HOME=@W@ mutt -Q from"),
        ("curl", ".curlrc", "url = file:///etc/passwd\noutput = @M@\n", "HOME=@W@ curl -s file:///dev/null"), ("wget", ".wgetrc", "use_askpass = @W@/p\n", "HOME=@W@ wget -q http://127.0.0.1:1/"), ("ripgrep", ".ripgreprc", "--pre=@W@/p\n", "echo a >a; RIPGREP_CONFIG_PATH=.ripgreprc rg a"),
        ("quilt", ".quiltrc", T, "HOME=@W@ quilt series"), ("darcs", ".darcs/defaults", "ALL prehook " + T + "\nALL run-prehook\n", "darcs init -q; HOME=@W@ darcs whatsnew"), ("gdb", ".gdbinit", "shell " + T, "HOME=@W@ gdb -q -batch -ex quit"), ("mailcap", ".mailcap", "text/x-z; " + T, None),
        ("latexmk", ".latexmkrc", "system('" + T + "');", None), ("latexmk", "latexmkrc", "system('" + T + "');", None), ("rpm", ".rpmmacros", "%x %(" + T + ")", None), ("psql", ".psqlrc-15", "\\! " + T, None), ("jupyter", "jupyter_config.py", T, None), ("ipython", ".ipython/profile_default/startup/x.py", T, None),
        ("Bazel", "tools/bazel", T, None), ("Bazel", ".bazeliskrc", T, None), ("Bazel", ".bazelversion", T, None), ("Metals", ".bsp/x.json", T, None), ("corepack", ".corepack.env", T, None), ("Continue", ".continuerc.json", T, None), ("rubocop", ".rubocop.yml", T, None), ("WezTerm", ".wezterm.lua", T, None),
        ("Starship", ".config/starship.toml", T, None), ("xonsh", ".xonshrc", T, None), ("elvish", ".config/elvish/rc.elv", T, None), ("Emacs", ".emacs.el", T, None), ("Emacs", ".config/emacs/init.el", T, None), ("Spacemacs", ".spacemacs", T, None), ("GitHub's gh", ".config/gh/config.yml", T, None),
        ("JetBrains", ".run/x.run.xml", T, None), ("Visual Studio", ".vs/launch.vs.json", T, None), ("Eclipse", ".externalToolBuilders/x.launch", T, None), ("Lua's language server", ".luarc.json", T, None), ("Docker", ".docker/config.json", T, None), ("kubectl", ".kube/config", T, None),
        ("the desktop", ".local/share/dbus-1/services/x.service", T, None), ("pip --user", ".local/lib/python3/site-packages/x.pth", T, None), ("the home's programs", ".local/bin/ls", T, None), ("bash-completion", ".local/share/bash-completion/completions/ls", T, None), ("ALSA", ".asoundrc", T, None)]:
    row(f"{tool}: {path}, too" if any(r[0] == f"{tool}: {path}" for r in rows) else f"{tool}: {path}", "held", "", run("p") + f"; mkdir -p '{path.rsplit('/', 1)[0] if '/' in path else '.'}'; cat >'{path}' <<'END'\n{text}\nEND\n", trigger)

# ---- noticed ----
for path in ["CLAUDE.md", "AGENTS.md", "GEMINI.md", ".cursorrules", ".windsurfrules", ".clinerules", ".tool-versions", ".python-version", ".nvmrc", ".github/workflows/ci.yml", ".agent/rules/x.md", ".github/agents/x.md", ".github/prompts/x.prompt.md", "AGENT.md", "WARP.md", ".circleci/config.yml", ".forgejo/workflows/x.yml", "Jenkinsfile", "eslint.config.js", ".eslintrc.cjs", ".go-version", ".github/copilot-instructions.md", ".gitlab-ci.yml"]:
    row(path, "noticed", "", f"mkdir -p {path.rsplit('/', 1)[0] if '/' in path else '.'}; echo x >{path}")

# ---- out of scope: a person runs these by name ----
for path, why in [("Makefile", "make runs it when a person asks for a target"), ("package.json", "npm runs scripts that a person names"), ("setup.py", "pip runs it when a person installs the project"), ("build.rs", "cargo runs it when a person builds"), ("conftest.py", "pytest runs it when a person tests"),
                  ("CMakeLists.txt", "cmake runs it when a person configures"), ("Dockerfile", "docker runs it when a person builds"), ("justfile", "just runs it when a person asks"), ("run.sh", "a script runs when a person starts it"), ("pyproject.toml", "build back ends run when a person installs"),
                  ("Rakefile", "rake runs it when a person asks"), ("build.gradle", "gradle runs it when a person builds"), ("pom.xml", "maven runs it when a person builds"), ("docker-compose.yml", "compose runs it when a person asks"), ("Gemfile", "bundler runs it when a person installs"), ("sitecustomize.py", "python imports it from its own path only")]:
    row(path, why, "", f"echo x >{path}")
